// boxwood workspaces, credit, hold, release and ledger: what the operator does when billing is on.

import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { CreditResponse, LedgerCheck, OperatorWorkspace } from '../../../shared/api/operator.ts'
import { HOLDS } from '../../../shared/field-values.ts'
import { formatCount } from '../../../shared/format-count.ts'
import { formatDollars, formatPrice } from '../../../shared/format-dollars.ts'
import { findWorkspaceId, listAllWorkspaces, openOperatorClient } from './operator-client.ts'
import { readConfig } from './read-config.ts'

const WORKSPACE = 'the id or the name of a workspace, or the email address of its owner'

const print = (line: string) => process.stdout.write(`${line}\n`)

export function addOperatorCommands(program: Command, signal: AbortSignal): void {
  const open = () => openOperatorClient(readConfig().dataDir, signal)

  program
    .command('workspaces')
    .summary('list the workspaces with their balances')
    .description('Lists the workspaces of the running coordinator with their balances, newest first.')
    .action(async () => {
      for (const workspace of await listAllWorkspaces(await open())) print(formatWorkspace(workspace))
    })

  program
    .command('credit')
    .summary('add credit to a workspace')
    .description(
      'Adds a payment that you have received to the balance of the workspace. The first payment ends the limits of ' +
        'free credit. An amount below 0 is an adjustment.',
    )
    .argument('<workspace>', WORKSPACE)
    .argument('<amount>', 'dollars, such as 25.00', parseAmount)
    .option('--note <text>', 'shown to the owners of the workspace')
    .addOption(new Option('--free', 'the credit is a gift: the limits of free credit remain'))
    .option('--cause <text>', 'such as the number of an invoice: a credit with this cause is added once')
    .action(async (workspace: string, amountUsd: number, options: CreditOptions) => {
      const client = await open()
      const id = await findWorkspaceId(client, workspace)
      const { created, workspace: changed } = await client.send<CreditResponse>(
        'POST',
        `/operator/workspaces/${id}/credit`,
        { amountUsd, ...options },
      )
      const balance = `The balance of ${changed.name} is ${formatDollars(changed.balanceMicros)}.`
      print(created ? balance : `A credit with this cause was added before. ${balance}`)
    })

  program
    .command('hold')
    .summary('pause a workspace')
    .description('Suspends the boxes of the workspace, and refuses to start boxes until `boxwood release`.')
    .argument('<workspace>', WORKSPACE)
    .addArgument(new Argument('<reason>', 'what the boxes do').choices(HOLDS))
    .action(async (workspace: string, reason: string) => {
      const client = await open()
      const id = await findWorkspaceId(client, workspace)
      await client.send('PUT', `/operator/workspaces/${id}/hold`, { reason })
      print(`The workspace ${id} is paused. Its boxes are being suspended.`)
    })

  program
    .command('release')
    .summary('end the pause of a workspace')
    .description('Lets the workspace start boxes again. Suspended boxes stay suspended.')
    .argument('<workspace>', WORKSPACE)
    .action(async (workspace: string) => {
      const client = await open()
      const id = await findWorkspaceId(client, workspace)
      await client.send('DELETE', `/operator/workspaces/${id}/hold`)
      print(`The workspace ${id} is not paused any more. Its boxes stay suspended until they are woken.`)
    })

  const ledger = program
    .command('ledger')
    .summary('check the ledger')
    .description('The ledger of the running coordinator.')
  ledger
    .command('check')
    .summary('compare balances and totals with the entries')
    .description(
      'Computes the balance of each workspace, and the usage of each month, from the entries of the ledger. Prints the ' +
        'differences to what is stored, and exits with 1 when there is one.',
    )
    .argument('[workspace]', `${WORKSPACE}; default: all`)
    .action(async (workspace?: string) => {
      const client = await open()
      const query = workspace === undefined ? '' : `?workspace=${await findWorkspaceId(client, workspace)}`
      const { workspaces, differences } = await client.send<LedgerCheck>(
        'GET',
        `/operator/ledger-check${query}`,
      )
      for (const { workspaceId, what, storedMicros, computedMicros } of differences)
        print(
          `${workspaceId} ${what}: stored ${storedMicros}, by the entries ${computedMicros} micro-dollars`,
        )
      print(
        `Checked ${formatCount(workspaces, 'workspace')}: ${formatCount(differences.length, 'difference')}.`,
      )
      if (differences.length > 0) process.exitCode = 1
    })
}

type CreditOptions = { note?: string; free?: boolean; cause?: string }

function parseAmount(text: string): number {
  if (/^-?\d{1,6}(\.\d{1,2})?$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be an amount in dollars, such as 25.00.')
}

function formatWorkspace(workspace: OperatorWorkspace): string {
  const { id, name, ownerEmail, balanceMicros, burnMicrosPerHour, trial, hold, flaggedAt, closingAt } =
    workspace
  const states = [
    ...(trial ? ['free credit'] : []),
    ...(hold === null ? [] : [`paused for ${hold}`]),
    ...(flaggedAt === null ? [] : [`full CPU since ${flaggedAt}`]),
    ...(closingAt === null ? [] : ['closing']),
  ]
  return [
    id,
    formatDollars(balanceMicros).padStart(10),
    `${formatPrice(burnMicrosPerHour)}/h`.padStart(10),
    name,
    ownerEmail ?? '-',
    ...(states.length === 0 ? [] : [`(${states.join(', ')})`]),
  ].join('  ')
}
