"""What stands where in the arrays that only the full loop has."""

# Columns of `tasks.num`: a request, beside its record. A row is two cache lines, and its station
# needs the first of them only.
INPUT_TOKENS = 0
OUTPUT_TOKENS = 1
HIT_TOKENS = 2  # input tokens whose prefill was spared
LOCAL_HIT_TOKENS = 3  # of them, those that the station held itself
FLOW = 4  # its fetch, -1 without one
FETCHED_BYTES = 5
HIT_DEPTH = 6  # vertices of its path that were not computed
KEPT_DEPTH = 7  # vertices of its path that it keeps in its station's radix cache
REQUEST = 8  # its number in the stream, from 0
NEAREST = 9  # nearest up node when it was routed, -1 without one
RUNNER_UP = 10  # station of the best path that was not taken, -1 where there was none
REDISPATCHES = 11  # times that it was sent again because its station failed
FETCH_ORDER = 12  # whether it is to fetch what its station lacks, see below
NUM_TASK_NUMS = 16

# Columns of `tasks.real`: likewise.
STALL_S = 0  # wait for its fetch, in its slot
RESTORE_S = 1  # unpacking of what was fetched, in its slot
SERVER_WAIT_S = 2  # wait for the prefill server, in its slot
PREFILL_S = 3  # from the first to the last computed input token
READY_S = 4  # when it may be prefilled
END_S = 5  # when it leaves its slot
PREDICTED_S = 6  # time to the first token as the router predicted it
TRANSFER_WAIT_S = 7  # what its fetch took longer than alone on the link
X_KM = 8
Y_KM = 9
RUNNER_UP_S = 10  # predicted time of the best path that was not taken, inf without one
NUM_TASK_REALS = 16

# More values of STATUS, see edgegym.simulator.columns.
STALLED = 5  # in its slot, its fetch still flows
RESTORING = 6  # in its slot, until READY_S
PREFILLING = 7  # in its slot, until its first token, where a radix cache waits for it
IN_ENGINE = 8  # in its slot, prefilled or decoding
TURNED_AWAY = 9  # to be sent on from its station
LOST = 10  # given up after a failure; freed when its event comes

# Codes of `Decision.spilled`.
NOT_SPILLED = 0
SPILLED_NODE = 1
SPILLED_ORIGIN = 2
REFUSED = 3  # its node is closed, and it may go nowhere else

NOBODY = -1
"""Station of a request that is rejected."""

# Values of FETCH_ORDER.
BY_CONTROLLER = 0
COMPUTE = 1
FETCH_ANYWAY = 2  # if something can be fetched when it lands

BY_ROUTER = -3
"""Forced station of a request that the scenario's router is to send."""

# Columns of `scalars`.
FIRST_REQUEST = 0  # number of the first request in the loaded block
FORCED_REQUEST = 1  # number of a request whose station is given, -1 for none
FORCED_STATION = 2  # that station, NOBODY, or BY_ROUTER
ROUTING_KEY = 3  # keys of random draws
FAULTS_KEY = 4
ORIGIN_KEY = 5
FORCED_FETCH = 6  # FETCH_ORDER of that request
ASKS = 7  # 1: stop before each new request whose station is not given
WINDOW_TICK = 8  # of a fleet that asks: when the window began
NUM_FULL_SCALARS = 9

# Columns of `node_flows`.
NODE_FLOW = 0  # the flow of its move or refresh, -1 without one
NODE_FLOW_KIND = 1  # which of the two it awaits
NUM_NODE_FLOW = 2

# Columns of `faults.num`: one row for each node, the origin and the link.
DOWN = 0  # causes for which it is down
TOGGLES = 1  # random failures and recoveries so far
NUM_FAULT = 2
