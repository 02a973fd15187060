// box billing: shows the balance of the workspace, what it spends, and how it pays.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { formatBilling } from '../billing/format-billing.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson } from '../output/print.ts'

export function addBillingCommand(program: Command, runAction: RunAction): void {
  program
    .command('billing')
    .summary('show the balance, and how long it lasts')
    .description(
      'Shows the balance of the workspace, what its boxes cost now, how long the balance lasts, the plan, the state of the ' +
        'payments, and where to pay. An API key needs read access to the workspace.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box billing
  box billing --json | jq .runwayHours

\`box usage\` shows what each box has cost.`,
    )
    .action((options: JsonOption) =>
      runAction(async ({ client }) => {
        const { billing } = await client.request<Account>('GET', '/me')
        if (billing === null)
          throw new CliError(
            EXIT.failed,
            'This API key may not read the billing: it needs read access to the workspace, and to all boxes.',
          )
        if (options.json) printJson(billing)
        else print(formatBilling(billing))
        return undefined
      }),
    )
}
