// The optional programs of the test suite. A test that uses one asks for it here, and is skipped with a reason where it is
// missing. The short part of CI runs with all of them hidden (suite/without-programs.ts).
import { accessSync, constants, globSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The programs of install/test-packages.sh and install/test-engines.sh, and C compilers. */
export const OPTIONAL_PROGRAMS = [
  ...['bwrap', 'slirp4netns', 'mmdebstrap', 'ip', 'iptables', 'nft', 'newuidmap', 'newgidmap'],
  ...['ssh', 'sshd', 'ssh-keygen', 'scp', 'sftp', 'rsync', 'curl', 'openssl', 'git', 'gh', 'aws'],
  ...['tmux', 'vim', 'vi', 'zsh', 'fish', 'busybox', 'shellcheck', 'top', 'script', 'promtool'],
  ...['getfattr', 'setfattr', 'getfacl', 'setfacl'],
  ...['nginx', 'caddy', 'chromium', 'Xvfb', 'xauth', 'openbox', 'x11vnc', 'xterm', 'xdotool'],
  ...['pip', 'pip3', 'pipx', 'cargo', 'cc', 'c++', 'gcc', 'g++', 'clang', 'tcc'],
  ...['psql', 'postgres', 'initdb', 'createdb'],
  ...['docker', 'dockerd', 'containerd', 'podman', 'runc', 'crun', 'skopeo', 'docker-registry'],
  ...['incus', 'incusd', 'dnsmasq', 'mkfs.btrfs', 'mkfs.xfs', 'fuse-overlayfs'],
] as const

export type OptionalProgram = (typeof OPTIONAL_PROGRAMS)[number]

/** Programs that not every Linux system has. They are not hidden, since other tests rely on some of them. */
export type SystemProgram =
  | ('bash' | 'dash' | 'perl' | 'wget' | 'conmon')
  | ('unshare' | 'nsenter' | 'setpriv' | 'flock' | 'findmnt' | 'ss')
  | ('apt-get' | 'dnf' | 'yum' | 'apk')

export type Program = OptionalProgram | SystemProgram

/** Programs outside the PATH. */
const DIRECTORIES = [
  ...(process.env.PATH ?? '').split(delimiter),
  ...['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/libexec/incus'],
  ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
]

/** Returns the path of the program. */
export function findProgram(name: Program): string | undefined {
  return DIRECTORIES.map((dir) => join(dir, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Why a test that needs these programs is skipped: the option `skip` of the test. false: all are installed. */
export function requires(...programs: Program[]): string | false {
  const missing = programs.filter((program) => findProgram(program) === undefined)
  if (missing.length === 0) return false
  return `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not installed`
}
