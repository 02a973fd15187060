// The entries of the ledger, newest first, with older ones on request.
import { useSignal } from '@preact/signals'
import type { BillingEntry, EntryList } from '../../../shared/api/billing.ts'
import { type RequestError, toRequestError } from '../../api/errors.ts'
import { describeKind, formatMicros } from '../../data/billing.ts'
import { boxes } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Freshness, useLoaded } from '../loaded.tsx'
import { Problem } from '../problem.tsx'

export function BillingEntries() {
  /** What was loaded after the first page. */
  const older = useSignal<EntryList | null>(null)
  const error = useSignal<RequestError | null>(null)
  const loaded = useLoaded(async () => {
    const page = await getWorkspaceClient().listBillingEntries(null)
    older.value = null
    return page
  })
  const { value } = loaded
  const before = (older.value ?? value)?.nextBefore ?? null
  async function loadMore(): Promise<void> {
    try {
      const page = await getWorkspaceClient().listBillingEntries(before)
      older.value = { ...page, entries: [...(older.value?.entries ?? []), ...page.entries] }
      error.value = null
    } catch (reason) {
      error.value = toRequestError(reason)
    }
  }
  const entries = [...(value?.entries ?? []), ...(older.value?.entries ?? [])]
  return (
    <section>
      <h2>Ledger</h2>
      {value !== null && entries.length === 0 && <p>There is no entry.</p>}
      {entries.length > 0 && <EntryTable entries={entries} />}
      <Problem error={error.value} />
      {before !== null && (
        <p class="buttons">
          <button type="button" onClick={() => void loadMore()}>
            Load more
          </button>
        </p>
      )}
      <Freshness loaded={loaded} />
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
              <time dateTime={at}>{at}</time>
            </th>
            <td data-label="Kind">{describeKind(kind)}</td>
            <td data-label="Amount">{formatMicros(amountMicros)}</td>
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
