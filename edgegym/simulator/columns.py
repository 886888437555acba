"""What stands where in the arrays of a fleet's state: names of columns, and of codes in them."""

# Column of `far_count` and `soon_count`.
SIZE = 0  # events in the heap

# Columns of `calendar_num`.
CURRENT_PAGE = 0  # number of the page whose events lie in the heap
ON_PAGES = 1  # events on later pages
FREE_LEAF = 2  # head of the list of free leaves, -1 when empty
USED_LEAVES = 3  # leaves from here on have never been used
NEXT_SEQUENCE = 4  # number of the next event, breaks ties in time and kind
NUM_CALENDAR = 5

# Columns of `scalars`.
FREE_RECORD = 0  # head of the list of free request records, -1 when empty
USED_RECORDS = 1  # records from here on have never been used
NEXT_BLOCK = 2  # number of the next stream block
NEXT_REQUEST = 3  # position in the loaded block
NUM_REQUESTS = 4  # requests in the loaded block
WINDOW_OPEN = 5  # whether an advance is in progress
PENDING_MOVES = 6  # moves started since the last advance
PENDING_BYTES = 7  # bytes charged for them
NUM_RECORDS = 8  # records that there are
FINGERPRINT = 9  # of the scenario's world
NOTED_NODE = 10  # full loop only: nearest node of a request that is still to be counted, -1 none
NOTED_FAMILY = 11  # its family
NUM_SCALARS = 12

# Columns of `record_time`: a cache line.
ARRIVAL_S = 0  # the request is made
JOIN_S = 1  # it reaches its node
START_S = 2  # it takes a slot
FIRST_TOKEN_S = 3  # known as soon as it has a slot
MARK = 4  # unit-mean random factor of its service
NUM_RECORD_TIMES = 8

# Columns of `record_index`: a cache line.
STATUS = 0
NEXT = 1  # next in its node's queue, or in the free list
TYPE = 2
NODE = 3
HOLDING = 4  # what the node held when the request took its slot
COUNTED = 5  # bits: DECISION_COUNTED, FIRST_TOKEN_COUNTED, SPILLED_BITS
NUM_RECORD_INDICES = 8

# Values of STATUS.
FREE = 0
IN_FLIGHT = 1
QUEUED = 2
ACTIVE = 3
SLOT_FREED = 4  # exponential service only: the slot is free, the first token still to come

DECISION_COUNTED = 1
FIRST_TOKEN_COUNTED = 2
SPILLED_SHIFT = 2  # full loop: above, how the request spilled when it was last sent
SPILLED_BITS = 3 << SPILLED_SHIFT

# Columns of `node_work`: all that an event changes at a node, in two cache lines.
IN_SLOTS = 0  # requests in a slot
WAITING = 1  # requests in the queue
ON_RADIO = 2  # requests routed to the node that have not reached it
SLOTS = 3  # of the node's profile
REPORTED = 4  # requests at the node as far as the router knows
HOLDS = 5  # what the node really holds
PLACE = 6  # where in `sites` the node is
REQUEST_S_BITS = 7  # 1 / (slots · service rate), the bits of a float
HEAD = 8  # first record in the queue
TAIL = 9  # last record in the queue
DRAINING = 10  # whether a move waits for slots to get free
ACCRUED_TICK = 11  # until when busy and capacity are counted
BUSY_TICKS = 12  # of the window: slot time in use
CAPACITY_TICKS = 13  # of the window: slot time there was
PREFILL_TIME_TICKS = 14  # of the window: prefill of the first tokens
NODE_CLASS = 15  # full loop only: its row of the prefill coefficients
NUM_NODE_WORK = 16

# Columns of `sites`: all that the search reads of a node, in half a cache line.
SITE_X_KM = 0  # inf where a node can't be chosen
SITE_Y_KM = 1
SITE_WAIT_S = 2  # advertised wait
SITE_BITS = 3  # of an integer: what the node really holds, and its index in the last 32 bits
NUM_SITE = 4
HOLDS_SHIFT = 32
NODE_MASK = (1 << HOLDS_SHIFT) - 1

# Columns of `node_measured`.
MEASURED_SUM_S = 0  # faded sum of realised waits
MEASURED_WEIGHT = 1  # faded number of them
MEASURED_AT_S = 2  # time of the last
NUM_MEASURED = 3

# Columns of `counters`: one window.
ARRIVALS = 0
DECIDED = 1
HITS = 2
FIRST_TOKENS = 3
COMPLETED = 4
REJECTED = 5
RADIO_TICKS = 6
WAIT_TICKS = 7
PREFILL_TICKS = 8
COLD_PREFILL_TICKS = 9
HIT_TOKENS = 10
GOODPUT_TOKENS = 11
MOVES_STARTED = 12
BYTES_MOVED = 13
NUM_COUNTERS = 14

# Rows of `family_counters`.
FAMILY_ARRIVALS = 0
FAMILY_DECIDED = 1
FAMILY_HITS = 2
