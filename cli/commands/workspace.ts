// box workspace: shows, lists, creates, selects, changes, closes and reopens workspaces.
import { Argument, type Command } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import type { Output } from '../workspaces/change-workspace.ts'

const importChanges = () => import('../workspaces/change-workspace.ts')
type Confirmed = Output & { yes?: boolean }

export function addWorkspaceCommand(program: Command, runAction: RunAction): void {
  const workspace = program
    .command('workspace')
    .summary('show, change, create or select workspaces')
    .description('Shows the workspace of the sign-in. Needs a sign-in with `box login`.')
    .addOption(createJsonOption())
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box workspace
  box workspace create research
  box workspace use research
  box workspace zero-data-retention on`,
    )
    .action((options: Output) =>
      runAction(async (session) => (await importChanges()).showWorkspace(session, options)),
    )
  const add = (name: string, summary: string, description: string): Command =>
    workspace.command(name).summary(summary).description(description)
  addSelection(add, runAction)
  addChanges(add, runAction)
}

type AddCommand = (name: string, summary: string, description: string) => Command

const withOutput = (command: Command): Command =>
  command.addOption(createQuietOption()).addOption(createJsonOption())

function addSelection(add: AddCommand, runAction: RunAction): void {
  withOutput(add('ls', 'list your workspaces', 'Lists the workspaces of which you are a member.')).action(
    (options: Output) =>
      runAction(async (session) => (await importChanges()).listWorkspaces(session, options)),
  )
  withOutput(
    add(
      'use',
      'switch to another workspace',
      'Switches the profile to another workspace of which you are a member.',
    ),
  )
    .argument('<workspace>', 'the name or id')
    .action((typed: string, options: Output) =>
      runAction(async (session) => {
        const { useWorkspace } = await import('../workspaces/use-workspace.ts')
        return useWorkspace(session, typed, options)
      }),
    )
  withOutput(add('create', 'create a workspace', 'Creates a workspace, which you own, and prints its id.'))
    .argument('<name>', 'the name')
    .action((name: string, options: Output) =>
      runAction(async (session) => (await importChanges()).createWorkspace(session, name, options)),
    )
}

function addChanges(add: AddCommand, runAction: RunAction): void {
  withOutput(add('rename', 'change the name', 'Changes the name of the workspace. For owners.'))
    .argument('<name>', 'the new name')
    .action((name: string, options: Output) =>
      runAction(async (session) => (await importChanges()).updateWorkspace(session, { name }, options)),
    )
  withOutput(
    add(
      'zero-data-retention',
      'store no commands and no output',
      'With `on`, the coordinator stores no commands, no output and no details in the audit log, and erases what it has stored. ' +
        'For owners. On a terminal, asks for confirmation.',
    ),
  )
    .addArgument(new Argument('<switch>', 'on or off').choices(['on', 'off']))
    .option('-y, --yes', 'do not ask for confirmation')
    .action((value: 'on' | 'off', options: Confirmed) =>
      runAction((session) => setZeroDataRetention(session, value, options)),
    )
  withOutput(
    add(
      'close',
      'close the workspace',
      'Closes the workspace: after some days, everything in it is deleted. For owners. On a terminal, asks for confirmation.',
    ),
  )
    .argument('<name>', 'the name of the workspace, to confirm')
    .option('-y, --yes', 'do not ask for confirmation')
    .action((name: string, options: Confirmed) =>
      runAction(async (session) => (await importChanges()).closeWorkspace(session, name, options)),
    )
  withOutput(
    add('reopen', 'reopen a closing workspace', 'Reopens a workspace that is closing. For owners.'),
  ).action((options: Output) =>
    runAction(async (session) => (await importChanges()).reopenWorkspace(session, options)),
  )
}

async function setZeroDataRetention(session: Session, value: 'on' | 'off', options: Confirmed) {
  const changes = await importChanges()
  return value === 'on'
    ? changes.enableZeroDataRetention(session, options)
    : changes.updateWorkspace(session, { zeroDataRetention: false }, options)
}
