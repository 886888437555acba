"""Columns and codes of what routing keeps and of what a rule sees of a candidate."""

# Columns of `station_load` and `tier_load`: an average utilisation, and when it closes or reopens.
MEAN_LOAD = 0  # its exponential average at LOAD_AT_S
LOAD = 1  # utilisation since then
LOAD_AT_S = 2
FLIP_S = 3  # after this time it is closed if it was open, and the other way round
CLOSED = 4  # 1 where it was closed at LOAD_AT_S
NUM_LOAD = 5

# Columns of `tier_sums`: over the up nodes of a profile.
TIER_BUSY = 0  # active and queued requests
TIER_SLOTS = 1
TIER_NODES = 2
NUM_TIER_SUMS = 3

# Columns of `station_sums`.
NOTED_TIER = 0  # the tier in whose sums the node is counted, -1 for none
NOTED_BUSY = 1  # its part of them
NOTED_SLOTS = 2
TOKENS_ON_WAY = 3  # input and output tokens of the requests on the radio
TOKENS_THERE = 4  # of those in the queue and in slots
TOKENS_REPORTED = 5  # as far as the router knows
NUM_STATION_SUMS = 6

# Columns of `station_past`.
ERROR_SQUARES = 0  # faded sum of squared prediction errors, s²
ERROR_WEIGHT = 1  # faded number of them
ERROR_AT_S = 2  # time of the last
GAP_SUM_S = 3  # faded sum of the times between requests sent here
GAP_SQUARES = 4  # of their squares
GAP_WEIGHT = 5  # faded number of them
SENT_AT_S = 6  # when the last was sent; -inf before the first
NUM_STATION_PAST = 7

# Columns of a candidate, all floats.
NODE = 0
PROFILE = 1
DISTANCE_SQUARED_KM2 = 2
RADIO_S = 3  # without the base latency, which all nodes share
PREFILL_S = 4  # with what the node advertises to hold
WAIT_S = 5  # advertised
FETCH_S = 6  # predicted
MARGIN_S = 7  # safety margin of the prediction
REQUESTS = 8  # n: in flight, queued and active as far as the router knows
SLOTS = 9  # c
REQUEST_S = 10  # mean time until one of its slots gets free when all are taken
HIT_TOKENS = 11  # advertised
INPUT_TOKENS = 12  # of the request
TOKENS_IN_USE = 13  # input and output tokens of the n requests
TYPE = 14  # of the request
FAMILY = 15  # of the request
DRAW = 16  # a number in [0, 1), the request's own, the same for all candidates
NUM_FEATURES = 17

# Numbers of a request's random draws from the routing key.
DRAW_OF_RULE = 0
DRAW_AMONG_OPEN = 2  # of the second choice, where the first is closed

# Values of `spill`.
NEXT_BEST = 0
SPILL_TO_ORIGIN = 1
REJECT = 2
