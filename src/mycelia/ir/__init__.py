"""The typed functional graph and the rules an operator has."""

from mycelia.ir import control as control
