// box mount and box unmount: let a box use secrets, and end that.
import type { Command } from 'commander'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'

type Output = JsonOption & QuietOption
const importMounts = () => import('../secrets/mounts.ts')

export function addMountCommands(program: Command, runAction: RunAction): void {
  addMount(program, runAction)
  addUnmount(program, runAction)
}

function addMount(program: Command, runAction: RunAction): void {
  program
    .command('mount')
    .summary('let a box use secrets without having their values')
    .description(
      'Mounts secrets on a box: new commands, terminals and prompts have the placeholder in a variable with the name of the secret. ' +
        "In the box's HTTPS requests to the hosts of the secret, the coordinator replaces the placeholder with the value.",
    )
    .argument('<box>', "the box's name or id")
    .argument('<secret...>', 'names or ids of secrets')
    .option('--as <variable>', 'another name for the variable')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box mount fig ANTHROPIC_API_KEY
  box mount fig WORK_GITHUB_TOKEN --as GH_TOKEN

\`box mounts fig\` lists the mounted secrets. \`box secrets set NAME\` creates a secret.`,
    )
    .action((box: string, secrets: string[], options: Output & { as?: string }) =>
      runAction(async (session) => (await importMounts()).mountSecrets(session, box, secrets, options)),
    )
}

function addUnmount(program: Command, runAction: RunAction): void {
  program
    .command('unmount')
    .summary('take secrets from a box')
    .description(
      'Unmounts secrets from a box: the coordinator replaces their placeholders no longer, and closes the open connections of the box ' +
        'to their hosts.',
    )
    .argument('<box>', "the box's name or id")
    .argument('<variable...>', 'variables, or names of secrets')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText('after', '\nExamples:\n  box unmount fig ANTHROPIC_API_KEY')
    .action((box: string, variables: string[], options: Output) =>
      runAction(async (session) => (await importMounts()).unmountSecrets(session, box, variables, options)),
    )
}
