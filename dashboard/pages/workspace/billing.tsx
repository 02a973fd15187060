// Billing, for owners: the balance, what boxes have cost in a month, and the ledger.
import type { BillingDetails } from '../../../shared/api/billing.ts'
import {
  describeHold,
  describePayment,
  describePlan,
  describeRunway,
  formatMicros,
  formatPrice,
  isExhausted,
  parseAmount,
} from '../../data/billing.ts'
import { session } from '../../data/live.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { BillingEntries } from '../../views/billing/entries.tsx'
import { MonthUsage } from '../../views/billing/month-usage.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

const REFRESH_MS = 60_000

export function BillingPage() {
  return session.value?.billing === 'off' ? <Off /> : <Billing />
}

const Off = () => (
  <>
    <PageHead page="billing" command="box billing" />
    <p>Billing is off: nothing has a price on this Boxwood.</p>
  </>
)

function Billing() {
  const loaded = useLoaded(() => getWorkspaceClient().loadBilling(), [], REFRESH_MS)
  const dialog = useDialog()
  const { value } = loaded
  return (
    <>
      <PageHead page="billing" command="box billing">
        {value?.provider === 'stripe' && (
          <button type="button" class="primary" onClick={() => dialog.open(CREDIT_DIALOG)}>
            Add credit
          </button>
        )}
      </PageHead>
      {value !== null && <Balance billing={value} />}
      <Freshness loaded={loaded} />
      <MonthUsage />
      <BillingEntries />
      {dialog.view}
    </>
  )
}

function Balance({ billing }: { billing: BillingDetails }) {
  const { balanceMicros, burnMicrosPerHour, plan, trial, hold } = billing
  const rows = [
    ['Balance', formatMicros(balanceMicros)],
    ['Boxes cost now', `${formatMicros(burnMicrosPerHour)} an hour`],
    ['The balance lasts for', describeRunway(billing)],
    ['Payment', describePayment(billing)],
    ['Plan', trial ? 'free credit' : 'paid'],
    ...(plan === null
      ? []
      : [
          ['The plan has', describePlan(plan)],
          ['Tiers', plan.tiers.join(', ')],
        ]),
  ]
  return (
    <>
      {hold !== null && <p class="problem">{describeHold(hold)}</p>}
      {isExhausted(billing) && (
        <p class="problem">The balance is empty. Boxes keep their files, and cannot be woken.</p>
      )}
      <dl>
        {rows.map(([term, text]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {billing.prices !== null && <Prices prices={billing.prices} />}
    </>
  )
}

function Prices({ prices }: { prices: NonNullable<BillingDetails['prices']> }) {
  return (
    <details>
      <summary>Prices</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Tier</th>
            <th scope="col">Running, an hour</th>
            <th scope="col">Suspended, an hour</th>
          </tr>
        </thead>
        <tbody>
          {prices.tiers.map(({ tier, runningMicrosPerHour, diskMicrosPerHour }) => (
            <tr key={tier}>
              <th scope="row">{tier}</th>
              <td data-label="Running, an hour">{formatPrice(runningMicrosPerHour)}</td>
              <td data-label="Suspended, an hour">{formatPrice(diskMicrosPerHour)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>A GB of snapshots costs {formatPrice(prices.snapshotGbMicrosPerHour)} an hour.</p>
    </details>
  )
}

const CREDIT_DIALOG: DialogProps = {
  title: 'Add credit',
  children: <p>The payment is made on the page of the payment provider.</p>,
  fields: [{ name: 'amount', label: 'Amount in dollars', value: '25' }],
  submitLabel: 'Continue to the payment',
  accepts: (values) => parseAmount(values.amount) !== null,
  async submit(values) {
    const { url } = await getWorkspaceClient().startPayment(parseAmount(values.amount) ?? 0)
    location.assign(url)
  },
}
