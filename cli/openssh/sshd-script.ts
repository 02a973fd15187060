// The shell script that runs on a box for OpenSSH: one sshd for one connection, on stdin and stdout.
import { createHash } from 'node:crypto'
import { shellQuoteAlways } from '../../shared/shell-quote.ts'

/**
 * sshd runs as the box user, with a host key of its own, and accepts only `publicKey`. It needs no port and no daemon. The
 * sessions get the environment of the box, except variables with special characters.
 */
export function createSshdScript(publicKey: string): string {
  const keyFile = `authorized_keys-${createHash('sha256').update(publicKey).digest('hex').slice(0, 16)}`
  return `# box ssh-proxy: sshd for one connection
set -eu
umask 077
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for program in sshd ssh-keygen; do
  command -v $program >/dev/null || {
    echo "box: this box has no $program. Install the OpenSSH server in a box with an image, else on the machine of the box (Debian, Ubuntu: apt-get install openssh-server)." >&2
    exit 1
  }
done
# sshd of root requires the directory, which the service of Debian creates.
[ "$(id -u)" != 0 ] || [ -d /run/sshd ] || mkdir -m 755 -p /run/sshd
dir=\${XDG_STATE_HOME:-$HOME/.local/state}/boxwood/ssh
mkdir -p "$dir"
if [ ! -e "$dir/host_key" ]; then
  ssh-keygen -q -t ed25519 -N '' -C boxwood -f "$dir/new_key.$$"
  mv "$dir/new_key.$$.pub" "$dir/host_key.pub"
  mv -n "$dir/new_key.$$" "$dir/host_key"
  rm -f "$dir/new_key.$$"
fi
printf '%s\\n' ${shellQuoteAlways(publicKey)} >"$dir/new_keys.$$"
mv "$dir/new_keys.$$" "$dir/${keyFile}"
setenv=
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
  eval "value=\\\${$name-}"
  case $name in HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|TERM|_) continue ;; esac
  case $value in *[\\"\\\\]* | *'
'*) continue ;; esac
  setenv="$setenv \\"$name=$value\\""
done
exec "$(command -v sshd)" -i -e -f /dev/null -o "HostKey=$dir/host_key" -o "AuthorizedKeysFile=$dir/${keyFile}" \\
  -o "SetEnv=$setenv" ${SSHD_OPTIONS.map((option) => `-o '${option}'`).join(' ')}
`
}

const SSHD_OPTIONS = [
  'AuthenticationMethods=publickey',
  'StrictModes=no',
  'UsePAM=no',
  'PidFile=none',
  'PrintMotd=no',
  'PrintLastLog=no',
  'UseDNS=no',
  'LogLevel=ERROR',
  'AcceptEnv=LANG LC_*',
  'Subsystem=sftp internal-sftp',
  // After the client has been unreachable for five minutes, sshd exits and leaves the background processes running.
  'ClientAliveInterval=60',
  'ClientAliveCountMax=5',
]
