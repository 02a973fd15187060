// box template: makes a template of a box or of a snapshot.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { CreateTemplateRequest, Snapshot } from '../../shared/api/snapshots.ts'
import { NoSuchNameError } from '../arguments/no-such-name.ts'
import { addOutputOptions } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import { findBox, isLive } from '../connection/find-box.ts'
import { addHints, SNAPSHOT_LIMIT_HINTS } from '../connection/refusals.ts'
import type { RunAction } from '../connection/session.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'
import { isSnapshotId, loadSnapshots, preferExistingBoxes } from '../snapshots/find-snapshot.ts'
import { finishSnapshot, type NewSnapshotOptions } from '../snapshots/new-snapshot.ts'

export function addTemplateCommand(program: Command, runAction: RunAction): void {
  addOutputOptions(
    program
      .command('template')
      .summary('make a template of a box or snapshot')
      .description(
        'Makes a template, from which `box create --from` creates boxes. Of a box: takes a snapshot now, and waits until it is ' +
          'available. Of a snapshot: gives the snapshot the name of the template. A template that had the name before becomes a ' +
          'plain snapshot. Prints the name of the template on stdout.',
      )
      .argument('<source>', 'name or id of a box or snapshot; a box wins')
      .argument('<name>', 'name of the template')
      .option('--description <text>', 'description of the snapshot of a box'),
  )
    .addHelpText(
      'after',
      `
Examples:
  box template fig web && box create --from web
  box template fig-20260131-031415 web

\`box templates\` lists the templates. \`box templates rm web\` removes the name and keeps the snapshot.`,
    )
    .action((source: string, name: string, options: NewSnapshotOptions) =>
      runAction(async (session) => {
        const found = await findSource(session.client, source)
        if ('hostname' in found) {
          const { description } = options
          const request: CreateTemplateRequest = { name, ...(description !== undefined && { description }) }
          const response = session.client.request<{ snapshot: Snapshot }>(
            'POST',
            `/boxes/${found.id}/template`,
            request,
          )
          const { snapshot } = await addHints(response, SNAPSHOT_LIMIT_HINTS)
          await finishSnapshot(session, snapshot, options, () => name)
        } else await nameSnapshot(session.client, found, name, options)
        return undefined
      }),
    )
}

async function findSource(client: Client, typed: string): Promise<Box | Snapshot> {
  const { boxes } = isSnapshotId(typed)
    ? { boxes: [] }
    : await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')
  const box = findBox(boxes, typed)
  if (box !== undefined) return box
  const { snapshots } = await loadSnapshots(client, '?transient=1')
  const snapshot = await preferExistingBoxes(client, snapshots, typed)
  if (snapshot !== undefined) return snapshot
  throw new NoSuchNameError({
    kind: 'box or snapshot',
    typed,
    names: [...boxes.filter(isLive).map(({ hostname }) => hostname), ...snapshots.map(({ name }) => name)],
    advice: '`box ls` lists the boxes, `box snapshots` the snapshots.',
    code: 'not_found',
  })
}

async function nameSnapshot(
  client: Client,
  { id }: Snapshot,
  name: string,
  { json, quiet }: NewSnapshotOptions,
): Promise<void> {
  const path = `/snapshots/${encodeURIComponent(id)}/template`
  const response = await addHints(
    client.request<{ snapshot: Snapshot; previous: Snapshot | null }>('POST', path, { name }),
    { snapshot_in_progress: `\`box wait ${id}\` waits for it.` },
  )
  if (json) {
    printJson(response)
    return
  }
  const { previous } = response
  if (previous !== null && previous.id !== id && !quiet)
    printStderr(
      `${sanitize(previous.name)} (${sanitize(previous.id)}) had this name before, and stays as a snapshot.`,
    )
  print(sanitize(name))
}
