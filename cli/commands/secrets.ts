// box secrets: lists, creates, grants and deletes secrets, whose values never reach a box.
import type { Command } from 'commander'
import type { Secret, SecretUse } from '../../shared/api/secrets.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { print, printJson } from '../output/print.ts'
import { findSecret, loadSecrets } from '../secrets/find-secret.ts'
import type { ImportOptions } from '../secrets/import-secrets.ts'
import { parseLocations } from '../secrets/locations.ts'
import { SECRETS, USES } from '../secrets/secret-list.ts'
import type { SetOptions } from '../secrets/set-secret.ts'

const importChanges = () => import('../secrets/set-secret.ts')
const importGrants = () => import('../secrets/grants.ts')

type Output = JsonOption & QuietOption

const collect = (text: string, previous: string[] = []): string[] => [...previous, text]
const addOutput = (command: Command): Command =>
  command.addOption(createQuietOption()).addOption(createJsonOption())

export function addSecretsCommand(program: Command, runAction: RunAction): void {
  const secrets = program
    .command('secrets')
    .summary('list, create, grant or delete secrets')
    .description(
      'Lists the secrets of the workspace, without their values. A box has a placeholder instead of the value: the coordinator ' +
        'replaces it in HTTPS requests to the hosts of the secret.',
    )
    .option('--box <name>', 'only the secrets that this box may mount')
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(secrets, 'the names', SECRETS.filters)
    .addHelpText(
      'after',
      `
Examples:
  box secrets set ANTHROPIC_API_KEY              asks for the value
  box secrets set TOKEN --host api.example.com <token.txt
  box secrets import .env
  box mount fig ANTHROPIC_API_KEY
  box secrets grant TOKEN fig
  box secrets usage TOKEN

BOXES is \`workspace\` for a secret without grants, which every box may mount that is not restricted.
\`box docs secrets\` describes what a secret protects from.`,
    )
    .action((options: ListOptions & { box?: string }) =>
      runAction(async ({ client, signal }) => {
        const box = options.box === undefined ? null : await client.findBox(options.box)
        const load = async () => {
          const rows = await loadSecrets(client, box?.id)
          return { rows, toJson: (shown: readonly Secret[]) => ({ secrets: shown }) }
        }
        return printList(SECRETS, load, options, signal)
      }),
    )
  addSet(secrets, runAction)
  addImport(secrets, runAction)
  addShow(secrets, runAction)
  addRotate(secrets, runAction)
  addGrants(secrets, runAction)
  addUsage(secrets, runAction)
  addRm(secrets, runAction)
}

function addSet(secrets: Command, runAction: RunAction): void {
  const set = secrets
    .command('set')
    .aliases(['create', 'add'])
    .summary('create a secret, or change it')
    .description(
      'Creates a secret, or replaces the value of an existing one, and its hosts, locations and description where they are given. The value is ' +
        'typed at a prompt that does not show it, or read from stdin when that is not a terminal: never an argument.',
    )
    .argument('<secret>', 'name, such as ANTHROPIC_API_KEY')
    .option(
      '--host <host>',
      'use the value in HTTPS requests to this host, or to all hosts below a domain: *.example.com; can be repeated, and replaces ' +
        'the hosts. Default for well-known names: the hosts of the provider',
      collect,
    )
    .option(
      '--in <locations>',
      'where the value is used in a request: header (default), query, path and body, separated by commas. A server may log what is ' +
        'in a query or a path',
      parseLocations,
    )
    .option(
      '--grant <box|email>',
      'only this box, or the boxes of this member, may mount the secret; can be repeated',
      collect,
    )
    .option('--description <text>', 'what the secret is for')
    .option('--from-env <variable>', 'read the value from this variable of the local environment')
    .option('--keep-value', 'change an existing secret without its value')
    .option(
      '--placeholder-prefix <text>',
      'public text before the placeholder, such as xoxb-, for programs that check the shape of a key',
    )
  addOutput(set)
    .addHelpText(
      'after',
      `
Examples:
  box secrets set ANTHROPIC_API_KEY
  box secrets set TOKEN --host api.example.com --grant fig <token.txt
  pass show token | box secrets set TOKEN --host '*.example.com'
  box secrets set TOKEN --keep-value --host api.example.com --host example.org
  box secrets set BOT_TOKEN --host api.telegram.org --in path
  box secrets set DEPLOY_KEY --host api.example.com --in body <key.pem

One newline at the end of stdin is removed, and others are kept. A further host discloses the value to this host: choose hosts that
belong to the provider of the key.`,
    )
    .action((name: string, options: SetOptions) =>
      runAction(async (session) => (await importChanges()).setSecret(session, name, options)),
    )
}

function addImport(secrets: Command, runAction: RunAction): void {
  const command = secrets
    .command('import')
    .summary('create the secrets of a .env file')
    .description(
      'Creates a secret for each variable of a .env file. Well-known names have the hosts of their provider. When one variable cannot ' +
        'be set, none is. No value is printed.',
    )
    .argument('<file>', 'the file; - is stdin')
    .option(
      '--host <host>',
      'the hosts of all names that box does not know, such as api.example.com or *.example.com; can be repeated',
      collect,
    )
    .option('--replace', 'replace the values of secrets that exist; their hosts and placeholders stay')
  addOutput(command)
    .addHelpText(
      'after',
      `
Examples:
  box secrets import .env
  box secrets import .env --replace
  grep '^EXAMPLE_' .env | box secrets import - --host api.example.com

Each host of a secret gets its value: import secrets of different providers one after the other. The format is that of
\`box env --file\`.`,
    )
    .action((path: string, options: ImportOptions) =>
      runAction(async (session) =>
        (await import('../secrets/import-secrets.ts')).importSecrets(session, path, options),
      ),
    )
}

function addShow(secrets: Command, runAction: RunAction): void {
  secrets
    .command('show')
    .summary('show a secret with its grants')
    .description('Shows a secret with its hosts and grants. The value cannot be shown.')
    .argument('<secret>', 'name or id')
    .addOption(createJsonOption())
    .action((name: string, options: JsonOption) =>
      runAction(async ({ client }) => {
        const secret = findSecret(await loadSecrets(client), name)
        if (options.json) return void printJson(secret)
        const { formatSecret } = await import('../secrets/describe-secret.ts')
        print(formatSecret(secret, Date.now()))
      }),
    )
}

function addRotate(secrets: Command, runAction: RunAction): void {
  const rotate = secrets
    .command('rotate')
    .summary('replace the value of a secret')
    .description(
      'Replaces the value of a secret, from the next request on. The placeholder stays, so nothing changes on the boxes. The value is ' +
        'typed at a prompt, or read from stdin.',
    )
    .argument('<secret>', 'name or id')
    .option('--from-env <variable>', 'read the value from this variable of the local environment')
  addOutput(rotate).action((name: string, options: Output & { fromEnv?: string }) =>
    runAction(async (session) => (await importChanges()).rotateSecret(session, name, options)),
  )
}

function addGrants(secrets: Command, runAction: RunAction): void {
  const grant = secrets
    .command('grant')
    .summary('limit a secret to boxes and members')
    .description(
      'Grants a secret to boxes, or to all boxes of a member. With its first grant a secret is limited to its grants, and is unmounted ' +
        'from all other boxes.',
    )
    .argument('<secret>', 'name or id')
    .argument('<grantee...>', 'names or ids of boxes, or email addresses of members')
  addOutput(grant)
    .addHelpText(
      'after',
      '\nExamples:\n  box secrets grant TOKEN fig plum\n  box secrets grant TOKEN ada@example.com',
    )
    .action((name: string, grantees: string[], options: Output) =>
      runAction(async (session) => (await importGrants()).grantSecret(session, name, grantees, options)),
    )
  const ungrant = secrets
    .command('ungrant')
    .summary('remove grants of a secret')
    .description(
      'Removes grants of a secret, and unmounts it from the boxes that no other grant covers: their open connections are closed. ' +
        'Without its last grant, no box may use the secret, until `box secrets grant` or `box secrets open`.',
    )
    .argument('<secret>', 'name or id')
    .argument('<grantee...>', 'boxes, email addresses, or ids of grants')
  addOutput(ungrant).action((name: string, grantees: string[], options: Output) =>
    runAction(async (session) => (await importGrants()).ungrantSecret(session, name, grantees, options)),
  )
  const open = secrets
    .command('open')
    .summary('remove all grants of a secret')
    .description(
      'Removes all grants of a secret, so that every box of the workspace that is not restricted may use it. A terminal is asked for ' +
        'confirmation, and scripts need --yes.',
    )
    .argument('<secret>', 'name or id')
    .option('-y, --yes', 'do not ask for confirmation')
  addOutput(open).action((name: string, options: Output & { yes?: boolean }) =>
    runAction(async (session) => (await importGrants()).openSecret(session, name, options)),
  )
}

function addUsage(secrets: Command, runAction: RunAction): void {
  const usage = secrets
    .command('usage')
    .summary('list which boxes have used a secret, for which hosts')
    .description(
      'Lists which boxes have sent requests with the value of a secret, and to which hosts, newest first.',
    )
    .argument('<secret>', 'name or id')
  addListOptions(usage, 'the hosts', USES.filters).action((name: string, options: ListOptions) =>
    runAction(async ({ client, signal }) => {
      const { id } = findSecret(await loadSecrets(client), name)
      const load = async () => {
        const { uses } = await client.request<{ uses: SecretUse[] }>('GET', `/secrets/${id}/usage`)
        return { rows: uses, toJson: (shown: readonly SecretUse[]) => ({ uses: shown }) }
      }
      return printList(USES, load, options, signal)
    }),
  )
}

function addRm(secrets: Command, runAction: RunAction): void {
  const rm = secrets
    .command('rm')
    .aliases(['delete', 'remove'])
    .summary('delete secrets')
    .description(
      'Deletes secrets with their mounts, grants and usage, and closes the connections that use them. On a terminal, asks for ' +
        'confirmation.',
    )
    .argument('<secret...>', 'names or ids')
    .option('-y, --yes', 'do not ask for confirmation')
  addOutput(rm).action((names: string[], options: Output & { yes?: boolean }) =>
    runAction(async (session) => (await importChanges()).deleteSecrets(session, names, options)),
  )
}
