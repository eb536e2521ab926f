"""Files and folders of this machine and of object stores, behind one small abstraction. Knows no Spark."""
