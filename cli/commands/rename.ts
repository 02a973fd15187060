// box rename: changes the name of a box.
import type { Command } from 'commander'
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import type { RunAction } from '../connection/session.ts'
import { loadRegions } from '../images/load-images.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'

export function addRenameCommand(program: Command, runAction: RunAction): void {
  program
    .command('rename')
    .summary('change the name of a box')
    .description(
      'Changes the name of a box, in every state, also of an enrolled machine. The old name is free immediately. Inside a box ' +
        'that runs or is frozen, the hostname changes with its next start; containers of Docker and Podman keep theirs.',
    )
    .argument('<box>', "the box's name or id")
    .argument('<new-name>', 'the new name')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box rename fig fig-old
  box rename fig-copy fig

Entries of \`box ssh-config\` contain the name: print them again after a rename.`,
    )
    .action((typed: string, name: string, options: JsonOption & QuietOption) =>
      runAction(async ({ client }) => {
        const { id, hostname } = await client.findBox(typed)
        const request: PatchBoxRequest = { name }
        const { box } = await client.request<{ box: Box }>('PATCH', `/boxes/${id}`, request)
        if (options.json) printJson(box)
        else if (!options.quiet)
          printStderr(`${sanitize(hostname)}: ${await describeRename(client, box, hostname)}`)
        return undefined
      }),
    )
}

async function describeRename(client: Client, box: Box, oldName: string): Promise<string> {
  const { hostname, isolation } = box
  if (hostname !== oldName && isolation?.level === 'container' && (await isDockerContainer(client, box)))
    return `renamed to ${hostname}. Inside the box, the hostname remains what it was when the box was created.`
  return hostname !== oldName && keepsHostname(box)
    ? `renamed to ${hostname}. Inside the box, the hostname is ${sanitize(oldName)} until its next start.`
    : `renamed to ${hostname}`
}

/** Docker and Podman set the hostname when they create a container. */
async function isDockerContainer(client: Client, box: Box): Promise<boolean> {
  const { regions } = await loadRegions(client)
  return regions.some(
    ({ region, provider }) => region === box.region && ['docker', 'podman'].includes(provider),
  )
}

/** The hostname of a box is set when its machine starts. At level process it is that of the machine. */
const keepsHostname = ({ kind, isolation, observedState, suspendedAs }: Box): boolean =>
  kind === 'managed' &&
  (isolation === null || isolation.level !== 'process') &&
  (suspendedAs === 'frozen' ||
    !['requested', 'suspended', 'deep_sleep', 'provision_failed'].includes(observedState))
