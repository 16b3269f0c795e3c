"""Which models of a session share what they learn, and which evaluation is worth most to all of them.

Groups of models that share parameters (``group.py``) are joined or on their own, as their observations say.
While any group is joined, evidences are correlated, and the next evaluation is chosen by what it tells of all
of them (``acquisition/coupled.py``).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modelodds.acquisition.base import Joint, Stakes
from modelodds.acquisition.coupled import COUPLED, stakes
from modelodds.group import Group
from modelodds.learner import Learner
from modelodds.method import Method
from modelodds.precision import Array as JaxArray
from modelodds.precision import jit64
from modelodds.surrogate.sharing import find_sharing

Array = NDArray[np.float64]


def _worth(rule: str, at_stake: Stakes, pull: JaxArray) -> JaxArray:
    return COUPLED[rule].worth(at_stake, pull)


_worth_64 = jit64(_worth, static=("rule",))

MOST = 4  # models of a group, unless coupling is asked for: compiling for more takes minutes


class Coupling:
    """All groups of a session."""

    def __init__(self, learners: Sequence[Learner], method: Method) -> None:
        self.learners = learners
        alone = [i for i, one in enumerate(learners) if one.surrogate.spec.blocks]
        found = find_sharing([one.model for one in learners], alone)
        most = len(learners) if method.coupling == "shared" else MOST
        self.groups = [Group(one, learners, method) for one in found if len(one.members) <= most]

    @property
    def active(self) -> list[Group]:
        """Groups whose models are joined at present."""
        return [group for group in self.groups if group.active]

    def release(self) -> None:
        """To be called before the learners learn."""
        for group in self.groups:
            group.release()

    def update(self) -> None:
        """Join or part, once the learners have learnt what is new."""
        for group in self.groups:
            group.update()

    def covariance(self, variance: Array, fixed: Array) -> Array:
        """Covariance (k, k) of log-evidences of ``variance`` (k,), the ``fixed`` part of it independent."""
        cov = np.diag(variance)
        open_to = np.sqrt(np.maximum(variance - fixed, 0.0))
        for group in self.active:
            own = _correlation(group.covariance())
            at = np.ix_(group.sharing.members, group.sharing.members)
            cov[at] = own * np.outer(*(open_to[list(group.sharing.members)],) * 2)
        np.fill_diagonal(cov, variance)
        return cov

    def choose(
        self, rule: str, active: Sequence[int], mean: Array, variance: Array, costs: Array
    ) -> tuple[int, Array]:
        """The model and the point that are worth most.

        Parameters
        ----------
        rule
            Name of the acquisition.
        active
            Positions of the models that may be evaluated.
        mean, variance : array (k,)
            Of the log-evidences, prior probabilities included; the variance as evaluations can lower it.
        costs : array (k,)
            Of an evaluation of each model.
        """
        shared, k = COUPLED[f"shared:{rule}"], len(mean)
        cov, found = np.diag(variance), []
        for group in self.active:
            shown, parts, ahead = group.searching()
            members = list(group.sharing.members)
            stretch = np.sqrt(variance[members] / group.covariance().diagonal())
            cov[np.ix_(members, members)] = ahead * np.outer(stretch, stretch)
            found.append((group, shown, parts, stretch))
        together = {member for group, *_ in found for member in group.sharing.members}
        alone = {i: self.learners[i].propose(rule) for i in active if i not in together}
        for i in alone:
            cov[i, i] *= self.learners[i].remaining
        at_stake = stakes(mean, cov)
        best: dict[int, tuple[float, Array]] = {}
        for group, shown, parts, stretch in found:
            members = list(group.sharing.members)
            if shared.original:
                own = np.expm1(np.minimum(cov.diagonal()[members], 300.0))
                stretch = np.sqrt(own / group.original_variance(shown, parts))
            for i, member in enumerate(members):
                if member in active:
                    joint = Joint(
                        *group.as_seen_by(i, parts),
                        np.stack([part.weight for part in parts]),
                        np.stack([part.on_data for part in parts]),
                        np.stack([part.on_basis for part in parts]),
                        tuple(part.features for part in parts) if shared.original else (),
                        stretch,
                        np.eye(k)[members],
                        at_stake,
                    )
                    learner = self.learners[member]
                    proposal = learner.search(f"shared:{rule}", shown[i]._replace(joint=joint))
                    best[member] = proposal.score, proposal.x
        for i, proposal in alone.items():
            scale = np.expm1(min(cov[i, i], 300.0)) if shared.original else cov[i, i]
            pull = np.sqrt(np.clip(proposal.score, 0.0, 1.0) * scale) * np.eye(k)[[i]]
            best[i] = float(_worth_64(rule=f"shared:{rule}", at_stake=at_stake, pull=pull)[0]), proposal.x
        i = max(best, key=lambda i: best[i][0] / costs[i])
        return i, best[i][1]


def _correlation(cov: Array) -> Array:
    sd = np.sqrt(np.maximum(cov.diagonal(), 1e-12))
    return np.asarray(np.clip(cov / np.outer(sd, sd), -1.0, 1.0))
