// box machine: creates, lists and revokes the tokens that enroll machines as boxes.
import type { Command } from 'commander'
import type {
  CreateEnrollmentRequest,
  CreateEnrollmentResponse,
  Enrollment,
} from '../../shared/api/machines.ts'
import { REGIONS } from '../../shared/tiers.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  parseEnvOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { createEnrollmentList, loadEnrollments, revokeEnrollments } from '../machines/enrollments.ts'
import { findUrlProblem } from '../machines/url-problem.ts'
import { formatActor, loadMemberNames } from '../members/member-names.ts'
import { formatAge } from '../output/format.ts'
import { print, printJson, printMessage, printStderr } from '../output/print.ts'

type AddOptions = JsonOption & QuietOption & { region?: string; env?: Record<string, string> }

export function addMachineCommand(program: Command, runAction: RunAction): void {
  const machine = program
    .command('machine')
    .summary('enroll a Linux machine as a box')
    .description(
      'Enrolls Linux machines as boxes. An enrolled machine is used like any other box; `box rm` uninstalls its agent.',
    )
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box machine add build-server
  box machine ls
  box machine rm enr_9f2c
  box ls --filter kind=machine`,
    )
  addAdd(machine, runAction)
  addLs(machine, runAction)
  addRm(machine, runAction)
}

function addAdd(machine: Command, runAction: RunAction): void {
  machine
    .command('add')
    .aliases(['create', 'enroll'])
    .summary('print the line that enrolls a machine')
    .description(
      'Creates a token, and prints the line to run on the machine. The token works once, within an hour. The commands of the box ' +
        'run as the user that runs the line. Needs a sign-in with `box login`.',
    )
    .argument('[name]', 'name of the box (default: the hostname of the machine)')
    .option('--region <region>', `a label, one of ${REGIONS.join(', ')} (default: that of new boxes)`)
    .option(
      '-e, --env <name=value>',
      'set an environment variable for every command on the box; can be repeated',
      parseEnvOption,
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      '\nExamples:\n  box machine add build-server\n  ssh build-server "$(box machine add -q build-server)"',
    )
    .action((name: string | undefined, options: AddOptions) =>
      runAction((session) => addMachine(session, name, options)),
    )
}

async function addMachine(
  { client }: Session,
  name: string | undefined,
  { region, env, json, quiet }: AddOptions,
): Promise<undefined> {
  const request: CreateEnrollmentRequest = {
    ...(name !== undefined && { name }),
    ...(region !== undefined && { region: region as NonNullable<CreateEnrollmentRequest['region']> }),
    ...(env !== undefined && { env }),
  }
  const response = await client.requestBySession<CreateEnrollmentResponse>('POST', '/machines', request)
  if (json) return void printJson(response)
  const { command, enrollment } = response
  if (!quiet) {
    const lifetime = formatAge(enrollment.createdAt, Date.parse(enrollment.expiresAt))
    printStderr(
      `Run this line on the machine, as the user of the box's commands. It works once, for ${lifetime}:`,
    )
  }
  print(command)
  const warning = quiet ? null : findUrlProblem(command)
  if (warning !== null) printMessage(warning)
}

function addLs(machine: Command, runAction: RunAction): void {
  const ls = machine
    .command('ls')
    .alias('list')
    .summary('list the unused tokens')
    .description('Lists the tokens that can still be used, newest first.')
  addListOptions(ls, 'the ids', createEnrollmentList(String).filters).action((options: ListOptions) =>
    runAction(async ({ client, signal }) => {
      const getUserName = await loadMemberNames(client)
      const list = createEnrollmentList((createdBy) => formatActor(createdBy, getUserName))
      const load = async () => {
        const rows = await loadEnrollments(client)
        return { rows, toJson: (shown: readonly Enrollment[]) => ({ enrollments: shown }) }
      }
      return printList(list, load, options, signal)
    }),
  )
}

function addRm(machine: Command, runAction: RunAction): void {
  machine
    .command('rm')
    .aliases(['revoke', 'delete', 'remove'])
    .summary('revoke unused tokens')
    .description('Revokes tokens that have not been used. `box rm` deletes the box of an enrolled machine.')
    .argument('<token...>', 'ids of tokens, or names of their boxes')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((typed: string[], options: JsonOption & QuietOption) =>
      runAction((session) => revokeEnrollments(session, typed, options)),
    )
}
