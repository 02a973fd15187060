// The init systems of machines: how they start, and how users run commands and reboot.

/** none: a container whose pid 1 only sleeps, and reaps no process. */
export type InitName = 'systemd' | 'busybox' | 'none'

type Init = {
  /** The program that becomes pid 1. */
  command: string[]
  /** Succeeds when the init has started all services. */
  isBooted: string
  /** null: only from outside. */
  reboot: string[] | null
  /** Runs a command line in a login session of this user. */
  login(user: string, commandLine: string): string[]
}

const login: Init['login'] = (user, commandLine) => ['su', '-', user, '-c', commandLine]

export const INITS: Record<InitName, Init> = {
  systemd: {
    command: ['/sbin/init'],
    isBooted: 'systemctl is-system-running --wait | grep -qE "running|degraded"',
    reboot: ['systemctl', 'reboot'],
    // The session of su would be outside the cgroups of systemd.
    login: (user, commandLine) => [
      ...['systemd-run', '--quiet', '--wait', '--pipe', `--uid=${user}`, '--property=PAMName=login'],
      ...[`--working-directory=/home/${user}`, '/bin/sh', '-c', commandLine],
    ],
  },
  busybox: { command: ['/sbin/init'], isBooted: 'grep -q init /proc/1/comm', reboot: ['reboot'], login },
  none: {
    command: ['/bin/sleep', '2147483647'],
    isBooted: 'grep -q sleep /proc/1/comm',
    reboot: null,
    login,
  },
}
