// Isolation level `bubblewrap`: bwrap creates the namespaces and assembles the file-system view.
import { dirname } from 'node:path'
import { MAPPED_UID, type Mount } from '../filesystem-view.ts'
import { type LevelInput, SHELL_PATH } from '../level-input.ts'
import { buildSetprivPrefix } from './process.ts'

export function buildBubblewrapCommand(input: LevelInput): string[] {
  const { uid, hostname, mounts, confinement, shellArgs } = input
  const userArgs =
    uid === null
      ? ['--unshare-user', '--uid', `${MAPPED_UID}`, '--gid', `${MAPPED_UID}`]
      : // Mount as root, which can read every data directory. setpriv needs these capabilities to drop privileges.
        [
          '--cap-drop',
          'ALL',
          '--cap-add',
          'CAP_SETUID',
          '--cap-add',
          'CAP_SETGID',
          '--cap-add',
          'CAP_SETPCAP',
        ]
  const args = [...userArgs, '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try']
  args.push('--as-pid-1', '--hostname', hostname, '--proc', '/proc', '--dev', '/dev')
  args.push('--perms', '1777', '--tmpfs', '/dev/shm')
  // When root runs bubblewrap, it creates missing parent directories with mode 0700.
  for (const dir of listParentDirs(mounts)) args.push('--perms', '0755', '--dir', dir)
  const readOnlyPaths = ['/']
  for (const mount of mounts) {
    if (mount.kind === 'ro') args.push('--ro-bind', mount.source, mount.path)
    else if (mount.kind === 'rw') args.push('--bind', mount.source, mount.path)
    else if (mount.kind === 'symlink') args.push('--symlink', mount.target, mount.path)
    else {
      args.push('--tmpfs', mount.path)
      readOnlyPaths.push(mount.path)
    }
  }
  for (const path of readOnlyPaths) args.push('--remount-ro', path)
  args.push('--chdir', '/', '--')
  return [
    ...buildBwrap(confinement.filterFile),
    ...args,
    ...buildSetprivPrefix(uid),
    ...confinement.prefix,
    SHELL_PATH,
    ...shellArgs,
  ]
}

/** bwrap reads the filter from a descriptor, which it closes. */
const buildBwrap = (filterFile: string | null): string[] =>
  filterFile === null
    ? ['bwrap']
    : [SHELL_PATH, '-c', 'exec 8<"$1"; shift; exec bwrap --seccomp 8 "$@"', 'sh', filterFile]

/** The ancestor directories of mounts that are not themselves inside a mount, each after its parent. */
function listParentDirs(mounts: Mount[]): string[] {
  const parentDirs = new Set<string>()
  for (const { path } of mounts) {
    const ancestors: string[] = []
    for (let dir = dirname(path); dir !== '/'; dir = dirname(dir)) ancestors.unshift(dir)
    if (!mounts.some((mount) => ancestors.includes(mount.path)))
      for (const dir of ancestors) parentDirs.add(dir)
  }
  return [...parentDirs]
}
