#!/bin/sh
# Makes what is needed here: Java and .venv/ with Lakelet in it. `setup.sh running` ends there: a run fetches Delta's jars itself. Without an
# argument the tools of developers, the jars and the class-data archive are made too.
# Says each step in a line; when nothing changed since the last time, it only looks at a stamp.
#
# PYTHON=<interpreter> picks the Python. LAKELET_CACHE, LAKELET_JARS and LAKELET_MAVEN: see `lakelet doctor` and the README.
set -eu
cd "$(dirname "$0")/.."

VENV=.venv
STAMP=$VENV/.set-up
LAKELET=.
GROUP="--group dev"
SIZE="about 2.3 GB"
if [ "${1:-}" = running ] && [ ! -f $STAMP ]; then  # where everything is, it stays
    STAMP=$VENV/.set-up-to-run LAKELET=".[quality]" GROUP="--group examples" SIZE="about 1.4 GB"
fi
JAVA_PACKAGE=openjdk-17-jre-headless

say() { printf 'setup: %s\n' "$1" >&2; }
stop() { printf 'setup: %s\n' "$1" >&2; exit 3; }
have() { command -v "$1" >/dev/null 2>&1; }
is_debian_root() { [ "$(id -u)" = 0 ] && have apt-get; }

# The stamp: what the result depends on. A moved checkout, another Java or another cache folder count as well.
fingerprint() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/java}
    {
        cat pyproject.toml constraints.txt scripts/setup.sh
        printf '%s\n' "$PWD" "${PYTHON:-}" "${LAKELET_CACHE:-}" "${LAKELET_JARS:-}"
        ls -lL "${java:-$(command -v java || echo /nowhere)}" 2>/dev/null || true
    } | cksum
}

# --- Java ---------------------------------------------------------------------------------------------------------------------

java_version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

java_command() {
    if have apt-get; then echo "sudo apt-get install -y $JAVA_PACKAGE"
    elif have dnf; then echo "sudo dnf install -y java-17-openjdk-headless"
    elif have brew; then echo "brew install openjdk@17"
    else echo "install a JRE 17 or newer, then: export JAVA_HOME=<its folder>"
    fi
}

need_java() {
    version=$(java_version || true)
    [ "${version:-0}" -ge 17 ] && return
    if [ -n "${JAVA_HOME:-}" ]; then stop "JAVA_HOME=$JAVA_HOME is not Java 17 or newer. Unset it or correct it, then start again."; fi
    is_debian_root || stop "Java 17 or newer is needed${version:+, here is $version}. Type: $(java_command)"
    say "installing Java: apt-get install $JAVA_PACKAGE"
    apt_install "$JAVA_PACKAGE" || apt_install default-jre-headless || stop "apt-get could not install Java. Type: $(java_command)"
    version=$(java_version || true)
    [ "${version:-0}" -ge 17 ] || stop "the java on the path is still ${version:-missing}. Set JAVA_HOME to a Java 17 or newer."
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" >/dev/null 2>&1 && return
    apt-get update >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" >/dev/null
}

# --- Python -------------------------------------------------------------------------------------------------------------------

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if have "$candidate" && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    stop "Python 3.10 or newer is needed. Name one with PYTHON=<interpreter>."
}

need_venv() {
    if [ -x $VENV/bin/python ] && $VENV/bin/python -c 'import pip' 2>/dev/null; then return; fi
    python=$(find_python)
    say "making $VENV with $("$python" --version)"
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        "$python" -m venv $VENV
    elif "$python" -m virtualenv --version >/dev/null 2>&1; then
        "$python" -m virtualenv -q $VENV
    elif have uv; then
        UV_PYTHON_DOWNLOADS=never uv venv -q --seed --allow-existing --python "$(command -v "$python")" $VENV
    elif is_debian_root; then
        say "installing python3-venv: apt-get install python3-venv"
        apt_install python3-venv || stop "apt-get could not install python3-venv."
        "$python" -m venv $VENV
    else
        stop "this Python cannot make environments. Type: sudo apt-get install -y python3-venv (or: python3 -m pip install uv)"
    fi
}

# uv resolves and installs a few times faster than pip, but does not read pip's settings (mirrors): where it fails, pip gets its turn.
install_packages() {
    uv=$(command -v uv || echo $VENV/bin/uv)
    [ -x "$uv" ] || $VENV/bin/python -m pip install -q --disable-pip-version-check uv 2>/dev/null || say "no uv; going on with pip"
    if [ -x "$uv" ]; then
        say "installing the packages with uv ($SIZE in $VENV; a minute or two the first time)"
        if "$uv" pip install -q --python $VENV/bin/python --compile-bytecode --constraint constraints.txt --editable "$LAKELET" $GROUP; then return; fi
        say "uv could not do it; going on with pip"
    fi
    say "installing the packages with pip (two minutes or more the first time)"
    $VENV/bin/python -m pip install -q --disable-pip-version-check 'pip>=25.1'  # older ones have no --group
    $VENV/bin/python -m pip install -q --disable-pip-version-check --constraint constraints.txt --editable "$LAKELET" $GROUP
}

# --- Spark --------------------------------------------------------------------------------------------------------------------

warm_up() {
    say "fetching Delta's jars and making Spark's class-data archive where they are missing (up to a minute, once)"
    if $VENV/bin/python -m lakelet.spark.launch.warmup; then return; fi
    $VENV/bin/lakelet doctor >&2  # ends the set-up when what is missing makes running impossible
}

now=$(fingerprint)
if [ -x $VENV/bin/lakelet ] && [ "$(cat $STAMP 2>/dev/null)" = "$now" ]; then exit 0; fi
need_java
need_venv
install_packages
[ "$STAMP" != "$VENV/.set-up" ] || warm_up
fingerprint >$STAMP
$VENV/bin/python -m compileall -q src || true  # where PYTHONDONTWRITEBYTECODE is set, every process would compile anew
say "done; .venv/bin/lakelet is ready"
