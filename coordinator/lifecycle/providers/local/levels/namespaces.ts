// Level 2: util-linux `unshare` makes the namespaces, enter.sh puts the view together in them.
import { fileURLToPath } from 'node:url'
import { MAPPED_UID } from '../view.ts'
import { dropTo } from './process.ts'
import { type LevelInput, SHELL_PATH } from './types.ts'

const ENTER = fileURLToPath(new URL('enter.sh', import.meta.url))

export function namespacesCommand({ uid, hostname, mounts, scratch, command }: LevelInput): string[] {
  const identity = uid === null ? ['--user', '--map-root-user'] : []
  // Mounting takes uid 0 of a user namespace; a second one inside turns it into an ordinary user.
  const drop =
    uid === null
      ? ['unshare', '--user', `--map-user=${MAPPED_UID}`, `--map-group=${MAPPED_UID}`, '--'].concat([
          'setpriv',
          '--no-new-privs',
          '--',
        ])
      : dropTo(uid)
  const triples = mounts.flatMap((mount) => {
    if (mount.kind === 'link') return ['link', mount.to, mount.at]
    return mount.kind === 'empty' ? ['empty', '-', mount.at] : [mount.kind, mount.from, mount.at]
  })
  return ['unshare', ...identity, '--mount', '--pid', '--fork', '--uts', '--ipc', '--']
    .concat([SHELL_PATH, ENTER, scratch, hostname, ...triples, '--'])
    .concat([...drop, SHELL_PATH, ...command])
}
