// box give: gives a box to another member of the workspace.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import type { Box, GiveBoxRequest } from '../../shared/api/boxes.ts'
import type { Member } from '../../shared/api/members.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { findMember, getLabel, loadMembers } from '../members/change-members.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { loadMounts } from '../secrets/mounts.ts'

type Options = JsonOption & QuietOption & { yes?: boolean }

export function addGiveCommand(program: Command, runAction: RunAction): void {
  program
    .command('give')
    .summary('give a box to another member')
    .description(
      'Gives a box with its snapshots to another member of the workspace. The box keeps running. From then on, the member is ' +
        'charged for it, and the limits of the member count it. Secrets that are granted to the previous owner only are unmounted. ' +
        'A box that a contractor gets becomes restricted, and stays so. For the owner of the box and owners of the workspace. On a ' +
        'terminal, asks before a change that you cannot undo.',
    )
    .argument('<box>', "the box's name or id")
    .argument('<member>', 'the email address, name or id; without a sign-in, the email address or id')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box give fig ada@example.com
  box give fig Ada --yes`,
    )
    .action((box: string, member: string, options: Options) =>
      runAction((session) => giveBox(session, box, member, options)),
    )
}

/** Returns the exit code. */
async function giveBox(
  { client, signal }: Session,
  typedBox: string,
  typedMember: string,
  { yes, json, quiet }: Options,
): Promise<number> {
  const box = await client.findBox(typedBox)
  const { request, member } = await findReceiver(client, typedMember)
  const name = sanitize(box.hostname)
  const label = sanitize(member ? getLabel(member) : typedMember)
  if (member?.id !== box.ownerUserId && !yes && canAsk(json ?? false)) {
    const effects = await listPermanentEffects(client, box, member)
    if (effects.length > 0 && !(await confirm(`${effects.join(' ')} Give ${name} to ${label}?`, signal))) {
      printMessage('the box stays with its owner.')
      return EXIT.failed
    }
  }
  const before = await loadMounts(client, box.id)
  const { box: given } = await client.request<{ box: Box }>('POST', `/boxes/${box.id}/owner`, request)
  if (json) printJson(given)
  if (json || quiet) return EXIT.ok
  if (given.ownerUserId === box.ownerUserId) {
    printStderr(`${name}: belongs to ${label} already`)
    return EXIT.ok
  }
  printStderr(`${name}: given to ${label}`)
  const { mounts } = await loadMounts(client, box.id)
  const unmounted = before.mounts.filter(({ id }) => !mounts.some((mount) => mount.id === id))
  if (given.restricted && !box.restricted)
    printMessage(`${name} is restricted now: it gets no secrets, and its links for others have ended.`)
  else if (unmounted.length > 0)
    printMessage(
      `no grant allows ${label} on ${name}, so unmounted: ${sanitize(unmounted.map(({ envName }) => envName).join(', '))}.`,
    )
  return EXIT.ok
}

type Receiver = { request: GiveBoxRequest; member: Member | null }

/** Only a sign-in lists the members. The coordinator finds an email address and an id. */
async function findReceiver(client: Client, typed: string): Promise<Receiver> {
  let members: Member[]
  try {
    members = await loadMembers(client)
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notAuthenticated) throw error
    if (typed.includes('@')) return { request: { email: typed }, member: null }
    if (typed.startsWith('usr_')) return { request: { ownerUserId: typed }, member: null }
    throw error
  }
  const member = findMember(members, typed)
  return { request: { ownerUserId: member.id }, member }
}

/** What the caller cannot undo, as sentences. */
async function listPermanentEffects(client: Client, box: Box, member: Member | null): Promise<string[]> {
  const { user } = await client.request<Account>('GET', '/me')
  return [
    ...(user?.role === 'owner'
      ? []
      : ['Only the new owner and owners of the workspace can give the box back.']),
    ...(member?.role === 'contractor' && !box.restricted
      ? [
          `${sanitize(getLabel(member))} is a contractor: the box loses its secrets and its links for others, and stays restricted.`,
        ]
      : []),
  ]
}
