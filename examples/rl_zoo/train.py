r"""RL Zoo with action masks: MaskablePPO under the name `ppo_mask`.

    pip install "edgegym[sb3]" rl_zoo3
    python train.py --algo ppo_mask --env EdgeGym/Placement-v0 --gym-packages edgegym \
        --conf-file ppo_mask.yml --eval-freq -1

RL Zoo has no MaskablePPO of its own, but takes algorithms by name. Masks are found by themselves:
MaskablePPO asks the environments for them. RL Zoo's periodic evaluation knows nothing of masks,
hence `--eval-freq -1`; evaluate with `edgegym.evaluation.compare`, which passes them:

    model = MaskablePPO.load("logs/ppo_mask/EdgeGym-Placement-v0_1/EdgeGym-Placement-v0.zip")
    print(compare({"mine": model, "static": "static"}, scenario="moving-hotspot"))
"""

from rl_zoo3.train import ALGOS, train
from sb3_contrib import MaskablePPO

ALGOS["ppo_mask"] = MaskablePPO

if __name__ == "__main__":
    train()
