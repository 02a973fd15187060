// box members: lists, invites, changes and removes members of the workspace.
import { type Command, Option } from 'commander'
import type { Role } from '../../shared/api/account.ts'
import type { Member, UpdateMemberRequest } from '../../shared/api/members.ts'
import { ROLES } from '../../shared/field-values.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatAge } from '../output/format.ts'

const MEMBERS: List<Member> = {
  columns: [
    { header: 'EMAIL', cell: ({ email }) => email ?? '-' },
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'ROLE', cell: ({ role }) => role },
    { header: 'STATUS', cell: ({ status }) => status },
    {
      header: 'ACTIVE',
      cell: ({ lastActiveAt }, now) => (lastActiveAt === null ? '-' : `${formatAge(lastActiveAt, now)} ago`),
      isRelativeTime: true,
    },
    { header: 'INVITED', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ email, id }) => email ?? id,
  filters: {
    email: { get: ({ email }) => email },
    name: { get: ({ name }) => name },
    role: { get: ({ role }) => role, values: ROLES },
    status: { get: ({ status }) => status, values: ['active', 'invited'] },
  },
  getEmptyMessage: () => 'No matching members.',
}

type Output = JsonOption & QuietOption
const importChanges = () => import('../members/change-members.ts')

const createRoleOption = (): Option =>
  new Option('--role <role>', 'owner; member: uses all boxes; contractor: uses only their own boxes').choices(
    ROLES,
  )

export function addMembersCommand(program: Command, runAction: RunAction): void {
  const members = program
    .command('members')
    .summary('list, invite, change or remove members')
    .description('Lists the members of the workspace. Needs a sign-in with `box login`.')
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(members, 'the email addresses', MEMBERS.filters)
    .addHelpText(
      'after',
      `
Examples:
  box members
  box members invite ada@example.com --role member
  box members set ada@example.com --role owner
  box members rm ada@example.com`,
    )
    .action((options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const { loadMembers } = await importChanges()
        const load = async () => {
          const rows = await loadMembers(client)
          return { rows, toJson: (shown: readonly Member[]) => ({ members: shown }) }
        }
        return printList(MEMBERS, load, options, signal)
      }),
    )
  addChanges(members, runAction)
}

function addChanges(members: Command, runAction: RunAction): void {
  members
    .command('invite')
    .alias('add')
    .summary('invite a person')
    .description('Invites a person to the workspace. They sign in with the email address. For owners.')
    .argument('<email>', 'the email address')
    .addOption(createRoleOption().makeOptionMandatory())
    .option('--name <name>', 'default: the part of the email address before the @')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((email: string, options: Output & { role: Role; name?: string }) =>
      runAction(async (session) => (await importChanges()).inviteMember(session, email, options)),
    )
  members
    .command('set')
    .summary('change the role or the name of a member')
    .description(
      'Changes the role or the name of a member. A new role applies from the next request on. For owners.',
    )
    .argument('<member>', 'the email address or id')
    .addOption(createRoleOption())
    .option('--name <name>', 'the new name')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((member: string, options: Output & UpdateMemberRequest) =>
      runAction(async (session) => (await importChanges()).setMember(session, member, options)),
    )
  members
    .command('rm')
    .aliases(['remove', 'delete'])
    .summary('remove members')
    .description(
      'Removes members, revokes their API keys and ends their sessions. Their boxes stay. On a terminal, asks for ' +
        'confirmation.',
    )
    .argument('<member...>', 'email addresses or ids')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((typed: string[], options: Output & { yes?: boolean }) =>
      runAction(async (session) => (await importChanges()).removeMembers(session, typed, options)),
    )
}
