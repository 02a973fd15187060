// Finds a snapshot by its id, its template name, its name, or a unique prefix of its id.
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { AMBIGUOUS_ID, findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

const ID_PREFIX = 'snp_'
/** The characters of an id after `snp_`: a mistyped name should not match an id by chance. */
const MIN_PREFIX_LENGTH = 8

export const isSnapshotId = (text: string): boolean => text.startsWith(ID_PREFIX)

/** @param query such as `?transient=1` */
export const loadSnapshots = (client: Client, query = ''): Promise<{ snapshots: Snapshot[] }> =>
  client.request('GET', `/snapshots${query}`)

/** @throws CliError when no snapshot or several snapshots match */
export async function findSnapshot(client: Client, typed: string): Promise<Snapshot> {
  const { snapshots } = await loadSnapshots(client, '?transient=1')
  const found = selectSnapshot(snapshots, typed)
  if (found === undefined) throw noSuchSnapshotError(typed)
  return found
}

/** An id wins over the name of a template, and that over the name of a snapshot. @throws CliError when several match */
export function selectSnapshot(snapshots: readonly Snapshot[], typed: string): Snapshot | undefined {
  const exact =
    snapshots.find(({ id }) => id === typed) ?? snapshots.find(({ templateName }) => templateName === typed)
  if (exact !== undefined) return exact
  const named = snapshots.filter(({ name }) => name === typed)
  if (named.length > 1) throw ambiguousNameError(typed, named)
  if (named.length === 1) return named[0]
  if (!isSnapshotId(typed) && typed.length < MIN_PREFIX_LENGTH) return undefined
  return findByPrefix(snapshots, isSnapshotId(typed) ? typed : ID_PREFIX + typed, {
    getId: ({ id }) => id,
    describe: ({ name }) => name,
    kind: 'snapshots',
  })
}

function ambiguousNameError(typed: string, snapshots: readonly Snapshot[]): CliError {
  const lines = snapshots
    .slice(0, 10)
    .map(
      ({ id, sourceBoxHostname, createdAt }) =>
        `\n  ${sanitize(id)}  ${sanitize(sourceBoxHostname)}  ${sanitize(createdAt)}`,
    )
  return new CliError(
    EXIT.usage,
    `${snapshots.length} snapshots have the name '${sanitize(typed)}'. Use an id:${lines.join('')}${snapshots.length > 10 ? '\n  …' : ''}`,
    { code: AMBIGUOUS_ID },
  )
}

export const noSuchSnapshotError = (typed: string): CliError =>
  new CliError(
    EXIT.notFound,
    `No such snapshot or template: '${sanitize(typed)}'. Run \`box snapshots\` to list snapshots.`,
    { code: 'no_such_snapshot' },
  )
