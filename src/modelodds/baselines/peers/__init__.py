"""What users would pick instead: other libraries, each run with the settings that its own documents give.

One model at a time, every model with free parameters getting the same share of the calls, and stopping by its
own rule where that comes first. None of them is needed by anything else here; each is imported when it runs.
"""
