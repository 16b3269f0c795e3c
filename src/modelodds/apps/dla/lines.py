"""The Lyman series and the instrument: numbers of Garnett et al. (2017), CGS units, wavelengths in Å."""

import numpy as np
from scipy import constants

# fmt: off
WAVELENGTHS = np.array([
    1215.6701, 1025.7223, 972.5368, 949.7431, 937.8035, 930.7483, 926.2257, 923.1504, 920.9631, 919.3514,
    918.1294, 917.1806, 916.429, 915.824, 915.329, 914.919, 914.576, 914.286, 914.039, 913.826, 913.641,
    913.480, 913.339, 913.215, 913.104, 913.006, 912.918, 912.839, 912.768, 912.703, 912.645,
])
STRENGTHS = np.array([
    0.4164, 0.07912, 0.029, 0.01394, 0.007799, 0.004814, 0.003183, 0.002216, 0.001605, 0.0012, 0.000921,
    0.0007226, 0.000577, 0.000469, 0.000386, 0.000321, 0.00027, 0.00023, 0.000197, 0.00017, 0.000148,
    0.000129, 0.000114, 0.000101, 0.000089, 0.00008, 0.000071, 0.000064, 0.000058, 0.000053, 0.000048,
])
# fmt: on
LYMAN_ALPHA = 1215.6701
LYMAN_LIMIT = 911.7633

LIGHT = 100.0 * constants.c  # cm/s
DAMPING = np.array([6.265e8, 1.897e8, 8.127e7])  # 1/s, of the three lines that an absorber's profile has
SIGMA = 9.0854e5  # cm/s, thermal velocity of hydrogen at 10^4 K
LORENTZ = DAMPING * WAVELENGTHS[:3] * 1e-8 / (4.0 * np.pi)  # cm/s, half widths
# Cross-sections integrated over velocity, cm^2 cm/s: pi e^2 f lambda / (m c), e in statcoulombs.
AREA = (
    np.pi
    * (constants.e * constants.c * 10.0) ** 2
    * STRENGTHS[:3]
    * WAVELENGTHS[:3]
    * 1e-8
    / (1000.0 * constants.m_e * LIGHT)
)

PIXEL = 1e-4  # dex, of an SDSS pixel
INSTRUMENT = np.array([0.00217461, 0.04116231, 0.24030936, 0.43270744, 0.24030936, 0.04116231, 0.00217461])
REACH = len(INSTRUMENT) // 2  # pixels on either side that broadening draws on
