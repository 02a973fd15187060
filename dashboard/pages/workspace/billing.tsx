// Billing, for owners: the balance, what boxes have cost in a month and will cost, and the ledger.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { BillingDetails } from '../../../shared/api/billing.ts'
import {
  describeHold,
  describePayment,
  describePlan,
  describeRunway,
  forecastMonth,
  formatMicros,
  formatMonthName,
  formatPrice,
  isExhausted,
  listMonths,
  parseAmount,
  toUsageRow,
} from '../../data/billing.ts'
import { getCoordinatorTime, session } from '../../data/live.ts'
import { changeQuery, query } from '../../data/navigation.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { CreditCardIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { BillingEntries } from '../../views/billing/entries.tsx'
import { type Month, MonthUsage, type Split } from '../../views/billing/month-usage.tsx'
import { Freshness, type Loaded, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

const REFRESH_MS = 60_000

export function BillingPage() {
  return session.value?.billing === 'off' ? <Off /> : <Billing />
}

const Off = () => (
  <>
    <PageHead page="billing" command="box billing" />
    <EmptyState icon={CreditCardIcon} title="Billing is off.">
      <p>Nothing has a price on this Boxwood. Its operator can turn billing on.</p>
      <p class="buttons">
        <a href="docs/guides/billing">How billing works</a>
      </p>
    </EmptyState>
  </>
)

async function loadMonth(month: string, split: Split): Promise<Month> {
  const { rows, ...usage } = await getWorkspaceClient().loadUsage(month, split)
  return { ...usage, split, rows: rows.map(toUsageRow) }
}

function Billing() {
  const split: Split = new URLSearchParams(query.value).get('by') === 'member' ? 'member' : 'box'
  const months = listMonths(getCoordinatorTime())
  const [current = ''] = months
  const month = useSignal(current)
  const account = useLoaded(() => getWorkspaceClient().loadBilling(), [], REFRESH_MS)
  const usage = useLoaded(() => loadMonth(month.value, split), [month.value, split])
  const entries = useLoaded(() => getWorkspaceClient().listBillingEntries(null))
  const dialog = useDialog()
  const billing = account.value
  // The usage of another month or another division is not shown as that of this one.
  const shown = usage.value?.month === month.value && usage.value.split === split ? usage.value : null
  return (
    <>
      <PageHead page="billing" command={['box billing', 'box usage']}>
        {billing?.provider === 'stripe' && (
          <button type="button" class="primary" onClick={() => dialog.open(CREDIT_DIALOG)}>
            Add credit
          </button>
        )}
      </PageHead>
      {billing === null && account.error === null && <Skeleton label="Loading the balance." rows={5} />}
      {billing !== null && <Account billing={billing} />}
      <MonthUsage
        months={months}
        month={month.value}
        onMonth={(name) => {
          month.value = name
        }}
        split={split}
        onSplit={(name) => changeQuery({ by: name === 'box' ? null : name })}
        usage={shown}
        error={usage.error}
      >
        {shown !== null && (
          <Forecast
            usage={shown}
            isCurrent={shown.month === current}
            hourlyMicros={billing?.burnMicrosPerHour ?? null}
          />
        )}
      </MonthUsage>
      <BillingEntries first={entries.value} error={entries.error} />
      <Freshness loaded={combine(account, [usage, entries])} />
      {dialog.view}
    </>
  )
}

/** One button loads all of them. */
const combine = (first: Loaded<unknown>, others: readonly Loaded<unknown>[]): Loaded<unknown> => ({
  ...first,
  at: Math.min(first.at, ...others.filter(({ at }) => at > 0).map(({ at }) => at)),
  async reload() {
    await Promise.all([first, ...others].map(({ reload }) => reload()))
  },
})

type ForecastProps = {
  usage: Month
  isCurrent: boolean
  /** Null: not known. */
  hourlyMicros: number | null
}

function Forecast({ usage, isCurrent, hourlyMicros }: ForecastProps) {
  const name = formatMonthName(usage.month)
  const forecast =
    isCurrent && hourlyMicros !== null ? forecastMonth(usage, hourlyMicros, getCoordinatorTime()) : null
  return (
    <p>
      <strong class="amount">{formatMicros(usage.totalMicros)}</strong> {isCurrent ? 'so far in' : 'in'}{' '}
      {name}.{' '}
      {forecast !== null && (
        <>
          If the boxes stay as they are, {name} will cost{' '}
          <strong class="amount">{formatMicros(forecast)}</strong>.
        </>
      )}
    </p>
  )
}

function Account({ billing }: { billing: BillingDetails }) {
  const { balanceMicros, burnMicrosPerHour, plan, trial, hold, prices } = billing
  return (
    <>
      {hold !== null && <p class="problem">{describeHold(hold)}</p>}
      {isExhausted(billing) && (
        <p class="problem">The balance is empty. Boxes keep their files, and cannot be woken.</p>
      )}
      <div class="cards">
        <Card title="Balance">
          <p class="figure">{formatMicros(balanceMicros)}</p>
          <dl>
            <Term name="It lasts for">{describeRunway(billing)}</Term>
            <Term name="Boxes cost now">{formatMicros(burnMicrosPerHour)} an hour</Term>
            <Term name="Payment">{describePayment(billing)}</Term>
          </dl>
        </Card>
        {plan !== null && (
          <Card title="Limits">
            <dl>
              <Term name="Plan">{trial ? 'free credit' : 'paid'}</Term>
              <Term name="At most">{describePlan(plan)}</Term>
              <Term name="Tiers">{plan.tiers.join(', ')}</Term>
            </dl>
            {prices !== null && <Prices prices={prices} />}
          </Card>
        )}
      </div>
    </>
  )
}

const Term = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

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
