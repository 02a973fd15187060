// Level 1: bubblewrap puts the view together and makes the namespaces.
import { dirname } from 'node:path'
import type { Mount } from '../view.ts'
import { dropTo } from './process.ts'
import { type LevelInput, SHELL_PATH } from './types.ts'

export function bubblewrapCommand({ uid, hostname, mounts, command }: LevelInput): string[] {
  const identity =
    uid === null
      ? ['--unshare-user', '--uid', '1000', '--gid', '1000']
      : // The mounts are made by root, which reaches every data folder; then setpriv needs these three to let go.
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
  const args = [...identity, '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try']
  args.push('--as-pid-1', '--hostname', hostname, '--proc', '/proc', '--dev', '/dev')
  args.push('--perms', '1777', '--tmpfs', '/dev/shm')
  // Run by root, bubblewrap would make the folders between as 0700.
  for (const dir of foldersBetween(mounts)) args.push('--perms', '0755', '--dir', dir)
  const readOnly = ['/']
  for (const mount of mounts) {
    if (mount.kind === 'ro') args.push('--ro-bind', mount.from, mount.at)
    else if (mount.kind === 'rw') args.push('--bind', mount.from, mount.at)
    else if (mount.kind === 'link') args.push('--symlink', mount.to, mount.at)
    else {
      args.push('--tmpfs', mount.at)
      readOnly.push(mount.at)
    }
  }
  for (const at of readOnly) args.push('--remount-ro', at)
  args.push('--chdir', '/', '--')
  return ['bwrap', ...args, ...dropTo(uid), SHELL_PATH, ...command]
}

/** The folders that lead to mounts and are in none, from the top down. */
function foldersBetween(mounts: Mount[]): string[] {
  const folders = new Set<string>()
  for (const { at } of mounts) {
    const ancestors: string[] = []
    for (let dir = dirname(at); dir !== '/'; dir = dirname(dir)) ancestors.unshift(dir)
    if (!mounts.some((mount) => ancestors.includes(mount.at))) for (const dir of ancestors) folders.add(dir)
  }
  return [...folders]
}
