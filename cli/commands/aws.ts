// box aws: lists, connects, verifies and disconnects the AWS roles that boxes use without a key.
import type { Command } from 'commander'
import type { AwsRole } from '../../shared/api/federation.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { ConnectOptions } from '../federation/change-roles.ts'
import { loadRoles, printMissing, ROLES } from '../federation/roles.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'

const importChanges = () => import('../federation/change-roles.ts')

type Output = JsonOption & QuietOption

const addOutput = (command: Command): Command =>
  command.addOption(createQuietOption()).addOption(createJsonOption())

const ROLE = 'profile, ARN or id'

export function addAwsCommand(program: Command, runAction: RunAction): void {
  const aws = program
    .command('aws')
    .summary('let boxes use AWS without a key')
    .description(
      'AWS roles that boxes assume with a token of their own, without a stored key. Each role is a profile of the boxes. Only owners ' +
        'change roles.',
    )
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box aws connect                          prints a link that creates a role
  box aws connect arn:aws:iam::123456789012:role/deploy
  box aws roles
  box exec fig -- aws s3 ls

\`box docs aws\` describes the trust policy of a role, and which boxes get it.`,
    )
  addRoles(aws, runAction)
  addConnect(aws, runAction)
  addVerify(aws, runAction)
  addDisconnect(aws, runAction)
}

function addRoles(aws: Command, runAction: RunAction): void {
  const roles = aws
    .command('roles', { isDefault: true })
    .aliases(['ls', 'list'])
    .summary('list the roles')
    .description('Lists the connected roles with their profiles, oldest first.')
  addListOptions(roles, 'the profiles', ROLES.filters).action((options: ListOptions) =>
    runAction(async ({ client, signal }) => {
      const load = async () => {
        const { roles: rows, ...facts } = await loadRoles(client)
        if (!options.json) printMissing({ ...facts, roles: rows })
        return { rows, toJson: (shown: readonly AwsRole[]) => ({ ...facts, roles: shown }) }
      }
      return printList(ROLES, load, options, signal)
    }),
  )
}

function addConnect(aws: Command, runAction: RunAction): void {
  const connect = aws
    .command('connect')
    .aliases(['add', 'create'])
    .summary('connect a role')
    .description(
      'Connects a role of your AWS account, and verifies that the workspace can assume it. Without a role, prints a link that opens a ' +
        'filled-in stack in the console of AWS: it creates the role and connects it. A new link cancels the previous one.',
    )
    .argument('[role-arn]', 'such as arn:aws:iam::123456789012:role/deploy')
    // --profile is an option of all commands: a sign-in of box.
    .option('--as <profile>', 'name of the profile (default: default, or the name of the role)')
    .option('--trust-policy', 'only print the trust policy that the role needs')
  addOutput(connect).action((roleArn: string | undefined, options: ConnectOptions) =>
    runAction(async (session) => (await importChanges()).connectRole(session, roleArn, options)),
  )
}

function addVerify(aws: Command, runAction: RunAction): void {
  const verify = aws
    .command('verify')
    .summary('verify that the workspace can assume roles')
    .description('Assumes each role once, and stores the result.')
    .argument('<role...>', ROLE)
  addOutput(verify).action((typed: string[], options: Output) =>
    runAction(async (session) => (await importChanges()).verifyRoles(session, typed, options)),
  )
}

function addDisconnect(aws: Command, runAction: RunAction): void {
  const disconnect = aws
    .command('disconnect')
    .aliases(['rm', 'delete', 'remove'])
    .summary('disconnect roles')
    .description(
      'Disconnects roles: boxes lose their profiles. The roles stay in AWS. Credentials that a box has from AWS are valid until they ' +
        'expire. On a terminal, asks for confirmation.',
    )
    .argument('<role...>', ROLE)
    .option('-y, --yes', 'do not ask for confirmation')
  addOutput(disconnect).action((typed: string[], options: Output & { yes?: boolean }) =>
    runAction(async (session) => (await importChanges()).disconnectRoles(session, typed, options)),
  )
}
