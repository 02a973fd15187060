// box templates: lists the templates. box templates rm: removes the names of templates.
import type { Command } from 'commander'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { loadSnapshots } from '../snapshots/find-snapshot.ts'
import { FILTERS, TEMPLATES } from '../snapshots/snapshot-list.ts'

type RemoveOptions = JsonOption & QuietOption

export function addTemplatesCommand(program: Command, runAction: RunAction): void {
  const command = program
    .command('templates')
    .summary('list the templates, or remove their names')
    .description('Lists the templates: the snapshots from which `box create --from` creates boxes by name.')
    // An option after `rm` belongs to `rm`.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(command, 'the names', FILTERS)
    .addHelpText(
      'after',
      `
Examples:
  box templates
  box templates --filter box=fig -o wide
  box templates rm web`,
    )
    .action((options: ListOptions) =>
      runAction(({ client, signal }) => {
        const load = async () => {
          const response = await loadSnapshots(client)
          return {
            rows: response.snapshots.filter(({ templateName }) => templateName !== null),
            toJson: (snapshots: readonly Snapshot[]) => ({ ...response, snapshots }),
          }
        }
        return printList(TEMPLATES, load, options, signal)
      }),
    )
  command
    .command('rm')
    .aliases(['delete', 'remove'])
    .summary('remove the names of templates')
    .description(
      'Removes the names of templates. The snapshots stay: `box snapshots rm` deletes them with their files.',
    )
    .argument('<template...>', 'names of templates')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box templates rm web

With several templates, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: RemoveOptions) =>
      runAction((session) => removeTemplates(session, names, options)),
    )
}

/** Returns the exit code. */
async function removeTemplates(
  { client }: Session,
  names: string[],
  { json, quiet }: RemoveOptions,
): Promise<number> {
  const batch = startBatch(names)
  const { snapshots } = await loadSnapshots(client)
  await batch.run([...new Set(names)], async (name) => {
    const template = snapshots.find(
      ({ id, templateName }) => templateName !== null && (templateName === name || id === name),
    )
    if (template === undefined) throw noSuchTemplateError(name)
    const response = await client.request<{ snapshot: Snapshot }>(
      'DELETE',
      `/snapshots/${encodeURIComponent(template.id)}/template`,
    )
    if (json) printJson(response.snapshot)
    else if (!quiet)
      printStderr(
        `${sanitize(name)}: removed; its snapshot ${sanitize(template.name)} (${sanitize(template.id)}) stays`,
      )
  })
  return batch.exitCode
}

const noSuchTemplateError = (name: string): CliError =>
  new CliError(
    EXIT.notFound,
    `No such template: '${sanitize(name)}'. Run \`box templates\` to list templates.`,
    { code: 'no_such_template' },
  )
