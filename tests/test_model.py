"""Models and lists of models: what is accepted, and what is refused with which words."""

import pickle

import numpy as np
import pytest
from scipy import stats

from modelodds.errors import ModelError, ModelOddsError, PriorError, QueryError
from modelodds.model import Model, check_models
from modelodds.prior import Prior

PRIOR = Prior({"slope": stats.norm(), "offset": 0.0})


def log_likelihood(theta):
    return -0.5 * np.sum(theta**2)


def test_model_reads_its_prior():
    model = Model("line", log_likelihood, PRIOR, prior_probability=np.float32(2))
    assert model.dim == 1 and model.parameters == ("slope", "offset")
    assert type(model.prior_probability) is float and model.prior_probability == 2.0
    assert model.vectorized is False


def test_dictionary_becomes_a_prior():
    model = Model("line", log_likelihood, {"slope": stats.norm()})
    assert isinstance(model.prior, Prior) and model.parameters == ("slope",)
    with pytest.raises(PriorError, match="'slope' is discrete"):
        Model("line", log_likelihood, {"slope": stats.poisson(3)})


def test_model_is_frozen_and_pickles():
    model = Model("line", log_likelihood, PRIOR)
    with pytest.raises(AttributeError):
        model.name = "other"
    copy = pickle.loads(pickle.dumps(model))
    assert (
        copy.name == "line" and copy.parameters == model.parameters and copy.log_likelihood is log_likelihood
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", log_likelihood, PRIOR), "name must be a non-empty string, not ''"),
        ((3, log_likelihood, PRIOR), "name must be a non-empty string, not 3"),
        (("m", -3.0, PRIOR), "log_likelihood of model 'm' must be a function of theta, not a float"),
        (("m", log_likelihood, stats.norm()), "prior of model 'm' must be a Prior or a dictionary"),
        (("m", log_likelihood, PRIOR, 0), "must be a finite number above 0, not 0"),
        (("m", log_likelihood, PRIOR, -1.0), "above 0, not -1.0"),
        (("m", log_likelihood, PRIOR, np.nan), "above 0, not nan"),
        (("m", log_likelihood, PRIOR, np.inf), "above 0, not inf"),
        (("m", log_likelihood, PRIOR, True), "above 0, not True"),
        (("m", log_likelihood, PRIOR, "1"), "above 0, not '1'"),
        (
            ("m", log_likelihood, PRIOR, 1.0, "yes"),
            "vectorized of model 'm' must be True or False, not 'yes'",
        ),
        (("m", log_likelihood, PRIOR, 1.0, False, 1.0, 5), "shared of model 'm' must go from its parameters"),
        (
            ("m", log_likelihood, PRIOR, 1.0, False, 1.0, "ab"),
            "others' names, as in {'slope': 'w1'}, not 'ab'",
        ),
    ],
)
def test_unusable_model(arguments, message):
    with pytest.raises(ModelError) as error:
        Model(*arguments)
    assert message in str(error.value)
    assert isinstance(error.value, ModelOddsError) and isinstance(error.value, ValueError)


def test_check_models_keeps_order():
    a, b = Model("a", log_likelihood, PRIOR), Model("b", log_likelihood, PRIOR)
    assert check_models([b, a]) == (b, a)
    assert check_models(model for model in [a]) == (a,)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "models is empty; give at least one Model"),
        (Model("a", log_likelihood, PRIOR), "models must be a list such as"),
        (None, "models must be a list such as"),
        ([Model("a", log_likelihood, PRIOR), log_likelihood], "models[1] is a function; make it a Model"),
        ([Model("a", log_likelihood, PRIOR)] * 2, "two models are called 'a'; give each its own name"),
    ],
)
def test_unusable_list(models, message):
    with pytest.raises(ModelError) as error:
        check_models(models)
    assert message in str(error.value)


def test_query_error_reads_as_a_sentence():
    error = QueryError("there is no open query 7")
    assert isinstance(error, KeyError) and str(error) == "there is no open query 7"


def test_models_in_a_dictionary_are_asked_for_as_a_list():
    with pytest.raises(ModelError, match=r"give list\(models.values\(\)\)"):
        check_models({"line": Model("line", log_likelihood, PRIOR)})
