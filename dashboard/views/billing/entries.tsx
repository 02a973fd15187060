// The entries of the ledger, newest first, with older ones on request.

import { useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { BillingEntry, EntryList } from '../../../shared/api/billing.ts'
import { describeKind, formatMicros } from '../../data/billing.ts'
import { boxes } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { LocalTime } from '../local-time.tsx'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

type BillingEntriesProps = {
  /** The newest page; null: not loaded. */
  first: EntryList | null
  /** Why it could not be loaded. */
  error: BoxwoodError | null
}

export function BillingEntries({ first, error: firstError }: BillingEntriesProps) {
  /** What was loaded after this first page. A newer first page has other pages after it. */
  const more = useSignal<{ first: EntryList; older: EntryList } | null>(null)
  const { error, run } = useAction()
  const older = more.value?.first === first ? more.value?.older : undefined
  const before = (older ?? first)?.nextBefore ?? null
  const loadMore = () =>
    run(async () => {
      if (first === null) return
      const page = await getWorkspaceClient().listBillingEntries(before)
      more.value = { first, older: { ...page, entries: [...(older?.entries ?? []), ...page.entries] } }
    })
  const entries = [...(first?.entries ?? []), ...(older?.entries ?? [])]
  return (
    <section>
      <h2>Ledger</h2>
      {first !== null && entries.length === 0 && <p>There is no entry.</p>}
      {entries.length > 0 && <EntryTable entries={entries} />}
      <Problem error={error.value ?? firstError} />
      {before !== null && (
        <p class="buttons">
          <button type="button" onClick={() => void loadMore()}>
            Load more
          </button>
        </p>
      )}
    </section>
  )
}

function EntryTable({ entries }: { entries: readonly BillingEntry[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Kind</th>
          <th scope="col">Amount</th>
          <th scope="col">Box</th>
          <th scope="col">Note</th>
        </tr>
      </thead>
      <tbody>
        {entries.map(({ id, at, kind, amountMicros, boxId, note }) => (
          <tr key={id}>
            <th scope="row">
              <LocalTime at={at} />
            </th>
            <td data-label="Kind">{describeKind(kind)}</td>
            <td data-label="Amount" class="amount">
              {formatMicros(amountMicros)}
            </td>
            <td data-label="Box">
              {boxId === null ? '–' : showHidden(boxes.value?.get(boxId)?.hostname ?? boxId.slice(0, 8))}
            </td>
            <td data-label="Note">{note === null ? '–' : showHidden(note)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
