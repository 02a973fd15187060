// The audit log: filters, pages, the download as CSV, and the check of the hash chain.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { AuditEvent } from '../../../shared/api/audit.ts'
import {
  type AuditFilter,
  type AuditNames,
  describeActor,
  describeDetail,
  formatAuditCommand,
  formatCsvPath,
  getNamesOfEvents,
  groupKinds,
  KINDS,
  NO_FILTER,
  toPageQuery,
} from '../../data/audit.ts'
import { boxes } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { LocalTime } from '../../views/local-time.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { useMemberNames } from '../../views/use-member-names.ts'
import { ChainCheck } from './chain-check.tsx'

export function AuditPage() {
  const filter = useSignal<AuditFilter>(NO_FILTER)
  /** The ends of the pages up to the shown one; empty: the newest page. */
  const ends = useSignal<readonly number[]>([])
  const end = ends.value.at(-1) ?? null
  const loaded = useLoaded(
    () => getWorkspaceClient().listAuditEvents(toPageQuery(filter.value, end)),
    [filter.value, end],
  )
  const users = useMemberNames()
  const names: AuditNames = {
    users,
    boxes: new Map([...(boxes.value?.values() ?? [])].map(({ id, hostname }) => [id, hostname])),
  }
  const { value } = loaded
  return (
    <>
      <PageHead page="audit" command={formatAuditCommand(filter.value)}>
        <a href={formatCsvPath(filter.value)} download="audit.csv">
          Download as CSV
        </a>
      </PageHead>
      <ChainCheck />
      <Filters
        names={names}
        apply={(values) => {
          filter.value = values
          ends.value = []
        }}
      />
      {value !== null && value.events.length === 0 && <p>No event matches on this page.</p>}
      {value !== null && value.events.length > 0 && <EventTable events={value.events} names={names} />}
      <p class="buttons">
        <button
          type="button"
          disabled={ends.value.length === 0}
          onClick={() => {
            ends.value = ends.value.slice(0, -1)
          }}
        >
          Newer
        </button>
        <button
          type="button"
          disabled={value === null || value.nextBefore === null}
          onClick={() => {
            if (value !== null && value.nextBefore !== null) ends.value = [...ends.value, value.nextBefore]
          }}
        >
          Older
        </button>
      </p>
      <Freshness loaded={loaded} />
    </>
  )
}

function EventTable({ events, names }: { events: readonly AuditEvent[]; names: AuditNames }) {
  const namesOfEvents = getNamesOfEvents(events)
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Event</th>
          <th scope="col">Time</th>
          <th scope="col">Kind</th>
          <th scope="col">Actor</th>
          <th scope="col">Box</th>
          <th scope="col">Detail</th>
        </tr>
      </thead>
      <tbody>
        {events.map(({ id, at, kind, origin, actorUserId, actorTokenId, actorKind, boxId, detail }) => (
          <tr key={id}>
            <th scope="row">{id}</th>
            <td data-label="Time">
              <LocalTime at={at} />
            </td>
            <td data-label="Kind">
              {kind}
              {origin === 'client' && <small> reported</small>}
            </td>
            <td data-label="Actor">
              {showHidden(describeActor({ actorUserId, actorTokenId, actorKind }, names))}
            </td>
            <td data-label="Box">
              {boxId === null ? (
                '–'
              ) : (
                <CommandsLink
                  boxId={boxId}
                  name={names.boxes.get(boxId)}
                  deletedName={namesOfEvents.get(boxId) ?? boxId.slice(0, 8)}
                />
              )}
            </td>
            <td data-label="Detail">{showHidden(describeDetail(detail, names, formatLocalTime)) || '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** @param props.name undefined: the box is deleted. Its page shows the commands as long as they are stored. */
function CommandsLink(props: { boxId: string; name: string | undefined; deletedName: string }) {
  const { boxId, name, deletedName } = props
  return (
    <a href={formatBoxPath(name ?? boxId, 'commands')}>{showHidden(name ?? `${deletedName} (deleted)`)}</a>
  )
}

function Filters({ names, apply }: { names: AuditNames; apply(filter: AuditFilter): void }) {
  const form = useRef<HTMLFormElement>(null)
  const live = [...(boxes.value?.values() ?? [])]
  return (
    <form
      ref={form}
      class="tools"
      aria-label="Filter"
      onSubmit={(event) => {
        event.preventDefault()
        if (form.current === null) return
        const values = Object.fromEntries(
          [...new FormData(form.current)].map(([name, text]) => [name, String(text)]),
        )
        apply({ ...NO_FILTER, ...values })
      }}
    >
      <label>
        Kind{' '}
        <select name="kind">
          <option value="">all</option>
          {groupKinds(KINDS).map(({ object, kinds }) => (
            <optgroup key={object} label={object}>
              {kinds.length > 1 && <option value={kinds.join(',')}>all of {object}</option>}
              {kinds.map((kind) => (
                <option key={kind} value={kind}>
                  {kind}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      <label>
        Since <input name="since" type="datetime-local" />
      </label>
      <label>
        Until <input name="until" type="datetime-local" />
      </label>
      <label>
        Box{' '}
        <select name="box">
          <option value="">all</option>
          {live.map(({ id, hostname }) => (
            <option key={id} value={id}>
              {showHidden(hostname)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Actor{' '}
        <select name="actor">
          <option value="">all</option>
          {[...names.users].map(([id, name]) => (
            <option key={id} value={id}>
              {showHidden(name)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Origin{' '}
        <select name="origin">
          <option value="">all</option>
          <option value="server">recorded by the coordinator</option>
          <option value="client">reported by clients</option>
        </select>
      </label>
      <button type="submit">Show</button>
    </form>
  )
}
