// box environments: lists, creates, changes and deletes environments, with which new boxes start.
import { Argument, type Command } from 'commander'
import type { Environment, EnvironmentToggles } from '../../shared/api/environments.ts'
import { createJsonOption, createQuietOption, type JsonOption, parseEnvOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { CreateOptions, Output, SetOptions } from '../environments/change-environment.ts'
import { ENVIRONMENTS, formatEnvironment } from '../environments/environment-list.ts'
import { findEnvironment, loadEnvironments } from '../environments/find-environment.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { print, printJson } from '../output/print.ts'

const importChanges = () => import('../environments/change-environment.ts')

const TOGGLES = ['restricted', 'git', 'cloud', 'codingAgents'] as const

const collect = (text: string, previous: string[] = []): string[] => [...previous, text]
const addOutput = (command: Command): Command =>
  command.addOption(createQuietOption()).addOption(createJsonOption())
const addName = (command: Command): Command =>
  command.argument('<environment>', 'name or id of the environment')

export function addEnvironmentsCommand(program: Command, runAction: RunAction): void {
  const environments = program
    .command('environments')
    .alias('envs')
    .summary('list or change what new boxes start with')
    .description(
      'Lists the environments. An environment has variables, files, git repositories, an image and rules for credentials. Each change of them ' +
        'makes a version; a box keeps its version until `box environments upgrade`.',
    )
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(environments, 'the names', ENVIRONMENTS.filters)
    .addHelpText(
      'after',
      `
Examples:
  box environments create web -e NODE_ENV=test --repo owner/name
  box create fig --environment web
  box environments set web NODE_ENV=production
  box environments file put web .npmrc
  box environments upgrade web                 the boxes get the new version
  box environments default web                 new boxes get it

\`box env\` sets the variables of a single box. Keys and tokens belong in secrets: \`box secrets set\`.`,
    )
    .action((options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const load = async () => {
          const rows = await loadEnvironments(client)
          return { rows, toJson: (shown: readonly Environment[]) => ({ environments: shown }) }
        }
        return printList(ENVIRONMENTS, load, options, signal)
      }),
    )
  addShow(environments, runAction)
  addCreate(environments, runAction)
  addSet(environments, runAction)
  addUnset(environments, runAction)
  addFile(environments, runAction)
  addRepo(environments, runAction)
  addToggle(environments, runAction)
  addDefault(environments, runAction)
  addUpgrade(environments, runAction)
  addRm(environments, runAction)
}

function addShow(environments: Command, runAction: RunAction): void {
  addName(environments.command('show'))
    .summary('show an environment')
    .description('Shows the latest version of an environment. The contents of its files cannot be shown.')
    .addOption(createJsonOption())
    .action((name: string, options: JsonOption) =>
      runAction(async ({ client }) => {
        const environment = findEnvironment(await loadEnvironments(client), name)
        if (options.json) printJson(environment)
        else print(formatEnvironment(environment, Date.now()))
        return undefined
      }),
    )
}

function addCreate(environments: Command, runAction: RunAction): void {
  const create = environments
    .command('create')
    .aliases(['add', 'new'])
    .summary('create an environment')
    .description('Creates an environment with its version 1.')
    .argument('<name>', 'name of the new environment')
    .option('-e, --env <name=value>', 'set a variable; can be repeated', parseEnvOption)
    .option('--file <path>', 'set the variables of a .env file, or of stdin with -; can be repeated', collect)
    .option(
      '--repo <repo>',
      'clone a repository: https://…, or owner/name of GitHub; can be repeated',
      collect,
    )
    .option('--image <image>', 'the image of new boxes that name none, such as debian:12')
    .option('--restricted', 'for third parties: its boxes get no secrets, secret files and cloud tokens')
    .option('--git', 'mount the git tokens of the workspace, such as GITHUB_TOKEN')
    .option('--cloud', 'mount the tokens of cloud providers, such as HCLOUD_TOKEN')
    .option('--coding-agents', 'mount the keys of coding agents, such as ANTHROPIC_API_KEY')
    .option('--description <text>', 'what the environment is for')
    .option('--default', 'new boxes get this environment')
  addOutput(create)
    .addHelpText(
      'after',
      `
Examples:
  box environments create web -e NODE_ENV=test --repo owner/name
  box environments create agents --coding-agents --git --default`,
    )
    .action((name: string, options: CreateOptions) =>
      runAction(async (session) => (await importChanges()).createEnvironment(session, name, options)),
    )
}

function addSet(environments: Command, runAction: RunAction): void {
  const set = addName(environments.command('set'))
    .alias('update')
    .summary('set variables, the image, the name or the description')
    .description(
      'Sets variables of an environment, or the image of its new boxes. Several changes make one version. Boxes keep their image also ' +
        'with `box environments upgrade`.',
    )
    .argument('[variable...]', 'NAME=VALUE')
    .option('--file <path>', 'set the variables of a .env file, or of stdin with -; can be repeated', collect)
    .option('--image <image>', "the image of new boxes that name none; '' removes it")
    .option('--name <name>', 'the new name')
    .option('--description <text>', "the new description; '' removes it")
  addOutput(set)
    .addHelpText(
      'after',
      "\nExamples:\n  box environments set web A=1 B='two words'\n  box environments set web --file .env",
    )
    .action((name: string, words: string[], options: SetOptions) =>
      runAction(async (session) => (await importChanges()).setEnvironment(session, name, words, options)),
    )
}

function addUnset(environments: Command, runAction: RunAction): void {
  const unset = addName(environments.command('unset'))
    .summary('remove variables')
    .description('Removes variables of an environment.')
    .argument('<variable...>', 'names of variables')
  addOutput(unset).action((name: string, variables: string[], options: Output) =>
    runAction(async (session) => (await importChanges()).unsetVariables(session, name, variables, options)),
  )
}

function addFile(environments: Command, runAction: RunAction): void {
  const file = environments
    .command('file')
    .summary('set or remove a file')
    .description('Sets or removes the files that boxes of an environment get. They are stored encrypted.')
    .helpCommand(false)
  const put = addName(file.command('put'))
    .summary('set a file')
    .description('Sets a file that boxes of the environment get, with the content of a local file.')
    .argument('<file>', 'a local file; - is stdin')
    .argument(
      '[path]',
      'path on the boxes, in the home directory unless it starts with / (default: the name of the file)',
    )
    .option('--mode <mode>', 'octal; default: 0600')
  addOutput(put)
    .addHelpText(
      'after',
      '\nExamples:\n  box environments file put web .npmrc\n  box environments file put web deploy.key .ssh/id_ed25519\n  box environments file put web - .config/tool.toml --mode 0644 <tool.toml',
    )
    .action((name: string, source: string, path: string | undefined, options: Output & { mode?: string }) =>
      runAction(async (session) => (await importChanges()).putFile(session, name, source, path, options)),
    )
  const rm = addName(file.command('rm'))
    .aliases(['delete', 'remove'])
    .summary('remove files')
    .description('Removes files of an environment. Boxes lose them with the upgrade.')
    .argument('<path...>', 'paths on the boxes')
  addOutput(rm).action((name: string, paths: string[], options: Output) =>
    runAction(async (session) => (await importChanges()).removeFiles(session, name, paths, options)),
  )
}

type RepoOptions = Output & { path?: string; ref?: string; secret?: string }

function addRepo(environments: Command, runAction: RunAction): void {
  const repo = environments
    .command('repo')
    .summary('add or remove a git repository')
    .description(
      'Adds or removes the git repositories that boxes of an environment clone at their first start.',
    )
    .helpCommand(false)
  const add = addName(repo.command('add'))
    .summary('add a repository')
    .description('Adds a git repository. `box repos` shows the clones of a box, and updates them.')
    .argument('<repo>', 'an https:// URL, or owner/name of GitHub')
    .option('--path <path>', 'directory of the clone (default: the last part of the URL)')
    .option('--ref <ref>', 'a branch, a tag or a commit (default: the default branch)')
    .option('--secret <secret>', 'for a private repository: the name of a secret with the token')
  addOutput(add)
    .addHelpText(
      'after',
      '\nExamples:\n  box environments repo add web owner/name\n  box environments repo add web owner/private --ref main --secret GITHUB_TOKEN',
    )
    .action((name: string, url: string, options: RepoOptions) =>
      runAction(async (session) => (await importChanges()).addRepo(session, name, url, options)),
    )
  const rm = addName(repo.command('rm'))
    .aliases(['delete', 'remove'])
    .summary('remove a repository')
    .description('Removes a git repository of an environment. Clones on boxes stay.')
    .argument('<repo>', 'as `box environments show` lists it')
  addOutput(rm).action((name: string, url: string, options: Output) =>
    runAction(async (session) => (await importChanges()).removeRepo(session, name, url, options)),
  )
}

function addToggle(environments: Command, runAction: RunAction): void {
  const toggle = addName(environments.command('toggle'))
    .summary('allow or forbid the use of credentials')
    .description(
      'Turns a toggle of an environment on or off. restricted: boxes get no secrets, no secret files, no cloud tokens and no links that ' +
        'need no membership. git, cloud, codingAgents: new boxes get the secrets with well-known names, such as GITHUB_TOKEN, ' +
        'HCLOUD_TOKEN or ANTHROPIC_API_KEY.',
    )
    .addArgument(new Argument('<toggle>', 'the toggle').choices(TOGGLES))
    .addArgument(new Argument('<state>', 'on or off').choices(['on', 'off']))
  addOutput(toggle).action(
    (name: string, key: keyof EnvironmentToggles, state: 'on' | 'off', options: Output) =>
      runAction(async (session) => (await importChanges()).toggle(session, name, key, state, options)),
  )
}

function addDefault(environments: Command, runAction: RunAction): void {
  const command = addName(environments.command('default'))
    .summary('make an environment the default of new boxes')
    .description('New boxes that name no environment get this one. Existing boxes stay unchanged.')
  addOutput(command).action((name: string, options: Output) =>
    runAction(async (session) => (await importChanges()).makeDefault(session, name, options)),
  )
}

function addUpgrade(environments: Command, runAction: RunAction): void {
  const upgrade = addName(environments.command('upgrade'))
    .summary('give the latest version to its boxes')
    .description(
      'Pins the boxes of an environment to its latest version. Running boxes get its files and variables at once, the others when they ' +
        'start. Skipped boxes are listed with the reason.',
    )
  addOutput(upgrade).action((name: string, options: Output) =>
    runAction(async (session) => (await importChanges()).upgradeBoxes(session, name, options)),
  )
}

function addRm(environments: Command, runAction: RunAction): void {
  const rm = environments
    .command('rm')
    .aliases(['delete', 'remove'])
    .summary('delete environments')
    .description(
      'Deletes environments. Boxes keep the version that they have. On a terminal, asks for confirmation.',
    )
    .argument('<environment...>', 'names or ids')
    .option('-y, --yes', 'do not ask for confirmation')
  addOutput(rm).action((names: string[], options: Output & { yes?: boolean }) =>
    runAction(async (session) => (await importChanges()).deleteEnvironments(session, names, options)),
  )
}
