// Isolation level `namespaces`: `unshare` creates the namespaces, pivot-root.sh assembles the file-system view.
import { fileURLToPath } from 'node:url'
import { MAPPED_UID } from '../filesystem-view.ts'
import { type LevelInput, SHELL_PATH } from '../level-input.ts'
import { buildSetprivPrefix } from './process.ts'

const PIVOT_ROOT_SCRIPT = fileURLToPath(new URL('pivot-root.sh', import.meta.url))

export function buildNamespacesCommand(input: LevelInput): string[] {
  const { uid, hostname, mounts, rootDir, confinement, shellArgs } = input
  const userNamespaceArgs = uid === null ? ['--user', '--map-root-user'] : []
  // Mounting needs uid 0. Without root, the outer user namespace provides uid 0. The nested user namespace then maps it to
  // an unprivileged uid.
  const privilegeDropPrefix =
    uid === null
      ? ['unshare', '--user', `--map-user=${MAPPED_UID}`, `--map-group=${MAPPED_UID}`, '--'].concat([
          'setpriv',
          '--no-new-privs',
          '--',
        ])
      : buildSetprivPrefix(uid)
  const mountArgs = mounts.flatMap((mount) => {
    if (mount.kind === 'symlink') return ['symlink', mount.target, mount.path]
    return mount.kind === 'tmpfs' ? ['tmpfs', '-', mount.path] : [mount.kind, mount.source, mount.path]
  })
  // Private: what the script mounts and unmounts does not reach the machine, whose mounts may be shared.
  return ['unshare', ...userNamespaceArgs, '--mount', '--propagation', 'private']
    .concat(['--pid', '--fork', '--uts', '--ipc', '--'])
    .concat([SHELL_PATH, PIVOT_ROOT_SCRIPT, rootDir, hostname, ...mountArgs, '--'])
    .concat([...privilegeDropPrefix, ...confinement.prefix, SHELL_PATH, ...shellArgs])
}
