"""What stands where in the arrays that only the full loop has."""

# Integer columns of a task.
INPUT_TOKENS = 0
OUTPUT_TOKENS = 1
REQUEST = 2  # global index in the stream, from 0
HIT_TOKENS = 3  # what prefill was spared
LOCAL_HIT_TOKENS = 4  # of which the station held
FLOW = 5  # its fetch, −1 without
FETCHED_BYTES = 6
NEAREST = 7  # nearest up node, −1 where there is none
RUNNER_UP = 8  # station of the best path that was not taken, −1 where there was none
REDISPATCHES = 9  # times that it was sent again because its station failed
NUM_TASK_NUMS = 10

# Real columns of a task.
X_KM = 0
Y_KM = 1
STALL_S = 2
RESTORE_S = 3
PREFILL_S = 4
PREDICTED_S = 5  # TTFT that the router expected of its choice, NaN where it expects none
RUNNER_UP_S = 6  # the same of the best path that was not taken
TRANSFER_WAIT_S = 7  # what its fetch took longer than alone on the link
NUM_TASK_REALS = 8
