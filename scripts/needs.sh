# Sourced by the scripts that build, and that install what tests and benchmarks need in addition to Rust.
#
# need COMMAND 'PACKAGE …' REASON   a required command, its Debian packages, what needs it
# install_needs WHAT                installs what is missing for WHAT: with apt as root on Debian or Ubuntu,
#                                   otherwise prints what is missing and the command to install it, and fails
# require_build_tools               fails with what to install where Rust or a C compiler is missing

commands=()
packages_of=()
reasons_of=()

need() {
    commands+=("$1")
    packages_of+=("$2")
    reasons_of+=("$3")
}

# Whether a program or a file exists. Programs may be outside an ordinary user's PATH.
has() {
    case $1 in
        # Without the files of the C library, a compiler exists and cannot link.
        cc) command -v cc >/dev/null && echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - 2>/dev/null ;;
        chromium) command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ;;
        firefox-esr) command -v firefox-esr >/dev/null || command -v firefox >/dev/null ;;
        python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] ;;
    esac
}

require_build_tools() {
    if ! command -v cargo >/dev/null; then
        echo "cargo is missing; install Rust 1.95 or later with rustup (https://rustup.rs)" >&2
        exit 1
    fi
    if ! has cc; then
        echo "a C compiler is missing; install the packages \`gcc\` and \`libc6-dev\` (their Debian names)" >&2
        exit 1
    fi
}

install_needs() {
    local what=$1 packages=() index policy=/usr/sbin/policy-rc.d
    for index in "${!commands[@]}"; do
        if ! has "${commands[$index]}"; then
            if [ ${#packages[@]} -eq 0 ]; then
                echo "missing for $what:" >&2
            fi
            echo "  ${commands[$index]}: ${reasons_of[$index]}" >&2
            read -ra more <<<"${packages_of[$index]}"
            packages+=("${more[@]}")
        fi
    done
    if [ ${#packages[@]} -eq 0 ]; then
        return 0
    fi
    if ! command -v apt-get >/dev/null; then
        echo "Install them with your system's package manager. Their Debian names: ${packages[*]}" >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        # The script and not apt alone, because apt would start the servers as services.
        local command
        command="$(realpath "$0") --packages"
        if command -v sudo >/dev/null; then
            echo "Run: sudo $command" >&2
        else
            echo "As root, run: $command" >&2
        fi
        echo "It installs these packages without starting their services: ${packages[*]}" >&2
        return 1
    fi
    # Packages must not start services such as a web server on port 80.
    if [ ! -e "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends "${packages[@]}"
    for index in "${!commands[@]}"; do
        if ! has "${commands[$index]}"; then
            echo "\`${commands[$index]}\` is still missing after the installation of ${packages_of[$index]}; install it by hand" >&2
            return 1
        fi
    done
}
