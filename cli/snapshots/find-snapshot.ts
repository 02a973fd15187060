// Finds a snapshot by its id, its template name, its name, or a unique prefix of its id.
import type { Box } from '../../shared/api/boxes.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { NoSuchNameError } from '../arguments/no-such-name.ts'
import { AMBIGUOUS_ID, findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatTimestamp } from '../output/format.ts'
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
  const found = await preferExistingBoxes(client, snapshots, typed)
  if (found === undefined) throw await createNoSuchSnapshotError(client, snapshots, typed)
  return found
}

/**
 * Selects a snapshot. Names are not unique, also because a deleted box may have had the same name as a new one: of several
 * snapshots with the name, the one of a box that exists wins. @throws CliError when several match
 */
export async function preferExistingBoxes(
  client: Client,
  snapshots: readonly Snapshot[],
  typed: string,
): Promise<Snapshot | undefined> {
  const named = snapshots.filter(({ name }) => name === typed)
  if (named.length < 2) return selectSnapshot(snapshots, typed)
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
  const existing = new Set(boxes.map(({ id }) => id))
  const [winner, ...others] = named.filter(({ boxId }) => existing.has(boxId))
  const exact = winner !== undefined && others.length === 0 ? winner.id : typed
  return selectSnapshot(snapshots, selectExact(snapshots, typed)?.id ?? exact, existing)
}

/**
 * An id wins over the name of a template, and that over the name of a snapshot.
 * @param existingBoxes the ids of the boxes that are not deleted, for the message @throws CliError when several match
 */
export function selectSnapshot(
  snapshots: readonly Snapshot[],
  typed: string,
  existingBoxes?: ReadonlySet<string>,
): Snapshot | undefined {
  const exact = selectExact(snapshots, typed)
  if (exact !== undefined) return exact
  const named = snapshots.filter(({ name }) => name === typed)
  if (named.length > 1) throw ambiguousNameError(typed, named, existingBoxes)
  if (named.length === 1) return named[0]
  if (!isSnapshotId(typed) && typed.length < MIN_PREFIX_LENGTH) return undefined
  return findByPrefix(snapshots, isSnapshotId(typed) ? typed : ID_PREFIX + typed, {
    getId: ({ id }) => id,
    describe: ({ name }) => name,
    kind: 'snapshots',
  })
}

const selectExact = (snapshots: readonly Snapshot[], typed: string): Snapshot | undefined =>
  snapshots.find(({ id }) => id === typed) ?? snapshots.find(({ templateName }) => templateName === typed)

function ambiguousNameError(
  typed: string,
  snapshots: readonly Snapshot[],
  existingBoxes: ReadonlySet<string> | undefined,
): CliError {
  const lines = snapshots.slice(0, 10).map(({ id, boxId, sourceBoxHostname, createdAt }) => {
    const note = existingBoxes?.has(boxId) === false ? ' (deleted)' : ''
    return `\n  ${sanitize(id)}  ${sanitize(sourceBoxHostname)}${note}  ${formatTimestamp(createdAt)}`
  })
  return new CliError(
    EXIT.usage,
    `${snapshots.length} snapshots have the name '${sanitize(typed)}'. Use an id:${lines.join('')}${snapshots.length > 10 ? '\n  …' : ''}`,
    { code: AMBIGUOUS_ID },
  )
}

/** The error names the snapshots of the box when the name is that of a box. @param snapshots those that were searched */
export async function createNoSuchSnapshotError(
  client: Client,
  snapshots: readonly Snapshot[],
  typed: string,
): Promise<CliError> {
  const names = snapshots.flatMap(({ name, templateName }) => [name, ...(templateName ? [templateName] : [])])
  return new NoSuchNameError({
    kind: 'snapshot or template',
    typed,
    names,
    advice: (await describeSnapshotsOf(client, snapshots, typed)) ?? 'Run `box snapshots` to list snapshots.',
    code: 'no_such_snapshot',
  })
}

/** null: no box has this name. */
async function describeSnapshotsOf(
  client: Client,
  snapshots: readonly Snapshot[],
  box: string,
): Promise<string | null> {
  const [newest, ...others] = snapshots.filter(({ sourceBoxHostname }) => sourceBoxHostname === box)
  const name = sanitize(box)
  if (newest !== undefined)
    return others.length === 0
      ? `The snapshot of box ${name} is ${sanitize(newest.name)}.`
      : `The newest snapshot of box ${name} is ${sanitize(newest.name)}; \`box snapshots ${name}\` lists all ${others.length + 1}.`
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', `/boxes?${new URLSearchParams({ box })}`)
  return boxes.some(({ hostname, observedState }) => hostname === box && observedState !== 'terminated')
    ? `Box ${name} has no snapshots: \`box snapshot ${name}\` takes one, \`box fork ${name}\` copies the box.`
    : null
}
