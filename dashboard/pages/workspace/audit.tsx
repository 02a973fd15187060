// The audit log: events as sentences by day, filters, pages, the download as CSV, and the check of the hash chain.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { AuditEvent } from '../../../shared/api/audit.ts'
import {
  type AuditFilter,
  formatAuditCommand,
  formatCsvPath,
  formatDay,
  getNamesOfEvents,
  groupByDay,
  groupKinds,
  listDetails,
  NO_FILTER,
  toPageQuery,
} from '../../data/audit.ts'
import {
  type AuditNames,
  describeActor,
  describeEvent,
  describeKind,
  isSystem,
  KINDS,
} from '../../data/audit-sentences.ts'
import { boxes, getCoordinatorTime } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { formatBoxPath } from '../../data/routes.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Avatar } from '../../design/avatar.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { IconButton } from '../../design/icon-button.tsx'
import { ChevronDownIcon, HistoryIcon } from '../../design/icons.ts'
import { Mark } from '../../design/mark.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../../views/age.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { useMemberNames } from '../../views/use-member-names.ts'
import { useChainCheck } from './chain-check.tsx'

export function AuditPage() {
  const filter = useSignal<AuditFilter>(NO_FILTER)
  /** The ends of the pages up to the shown one; empty: the newest page. */
  const ends = useSignal<readonly number[]>([])
  const end = ends.value.at(-1) ?? null
  const loaded = useLoaded(
    () => getWorkspaceClient().listAuditEvents(toPageQuery(filter.value, end)),
    [filter.value, end],
  )
  const check = useChainCheck()
  const users = useMemberNames()
  const { value, error } = loaded
  /** The names of boxes in the pages that were loaded. */
  const seen = useSignal<ReadonlyMap<string, string>>(new Map())
  useEffect(() => {
    if (value !== null) seen.value = new Map([...seen.value, ...getNamesOfEvents(value.events)])
  }, [value])
  const live = new Map([...(boxes.value?.values() ?? [])].map(({ id, hostname }) => [id, hostname]))
  const deleted = listDeleted(seen.value, live)
  const named = new Map([...live, ...deleted])
  return (
    <>
      <PageHead page="audit" command={[formatAuditCommand(filter.value), 'box audit verify']}>
        {check.button}
        <a class="button quiet" href={formatCsvPath(filter.value)} download="audit.csv">
          Download as CSV
        </a>
      </PageHead>
      {check.result}
      <Filters
        users={users}
        boxes={named}
        apply={(values) => {
          filter.value = values
          ends.value = []
        }}
      />
      {value === null && error === null && <Skeleton label="Loading the events." rows={12} />}
      {value !== null && value.events.length === 0 && (
        <EmptyState icon={HistoryIcon} title="No event is on this page.">
          <p>The filter matches no event here.{value.nextBefore !== null && ' Older pages may have some.'}</p>
        </EmptyState>
      )}
      {value !== null && <Days events={value.events} names={{ users, boxes: named }} live={live} />}
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

type DaysProps = {
  /** Newest first. */
  events: readonly AuditEvent[]
  names: AuditNames
  /** The names of the boxes that are not deleted, by id. */
  live: ReadonlyMap<string, string>
}

const listDeleted = (seen: ReadonlyMap<string, string>, live: ReadonlyMap<string, string>) =>
  [...seen].filter(([id]) => !live.has(id)).map(([id, name]) => [id, `${name} (deleted)`] as const)

function Days({ events, names, live }: DaysProps) {
  return (
    <>
      {groupByDay(events).map(({ day, events: ofDay }) => (
        <section key={day}>
          <h2>{formatDay(day, getCoordinatorTime())}</h2>
          <ol class="log">
            {ofDay.map((event) => (
              <EventItem key={event.id} event={event} names={names} live={live} />
            ))}
          </ol>
        </section>
      ))}
    </>
  )
}

type EventItemProps = { event: AuditEvent; names: AuditNames; live: DaysProps['live'] }

function EventItem({ event, names, live }: EventItemProps) {
  const { id, at, origin, boxId } = event
  const isOpen = useSignal(false)
  return (
    <li>
      {isSystem(event) ? <Mark size={24} /> : <Avatar name={describeActor(event, names)} />}
      <span>
        {describeEvent(event, names).map(({ text, role }, index) =>
          role === 'text' ? (
            text
          ) : (
            <bdi key={index}>
              {role === 'box' && boxId !== null ? (
                // The page of a deleted box shows its commands as long as they are stored.
                <a href={formatBoxPath(live.get(boxId) ?? boxId, 'commands')}>{showHidden(text)}</a>
              ) : (
                <strong>{showHidden(text)}</strong>
              )}
            </bdi>
          ),
        )}
        {origin === 'client' && <small> reported by the client</small>}
      </span>
      <Age at={at} />
      <IconButton
        icon={ChevronDownIcon}
        label={`Details of event ${id}`}
        isExpanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value
        }}
      />
      {isOpen.value && (
        <dl>
          {listFields(event, names).map(([term, text]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{showHidden(text)}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  )
}

const listFields = (event: AuditEvent, names: AuditNames): [string, string][] => [
  ['Time', formatLocalTime(Date.parse(event.at))],
  ['Event', String(event.id)],
  ['Kind', event.kind],
  ['Actor', describeActor(event, names)],
  ...(event.boxId === null
    ? []
    : [['Box', names.boxes.get(event.boxId) ?? event.boxId] satisfies [string, string]]),
  ...listDetails(event.detail, names, formatLocalTime),
]

type FiltersProps = {
  users: AuditNames['users']
  /** Names by id. */
  boxes: ReadonlyMap<string, string>
  apply(filter: AuditFilter): void
}

function Filters({ users, boxes, apply }: FiltersProps) {
  const form = useRef<HTMLFormElement>(null)
  return (
    <form
      ref={form}
      class="tools filters"
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
      <select name="kind" aria-label="Kind">
        <option value="">All kinds</option>
        {groupKinds(KINDS).map(({ object, kinds }) => (
          <optgroup key={object} label={object}>
            {kinds.length > 1 && <option value={kinds.join(',')}>all of {object}</option>}
            {kinds.map((kind) => (
              <option key={kind} value={kind}>
                {describeKind(kind)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
      <select name="box" aria-label="Box">
        <option value="">All boxes</option>
        {[...boxes].map(([id, name]) => (
          <option key={id} value={id}>
            {showHidden(name)}
          </option>
        ))}
      </select>
      <select name="actor" aria-label="Actor">
        <option value="">All people</option>
        {[...users].map(([id, name]) => (
          <option key={id} value={id}>
            {showHidden(name)}
          </option>
        ))}
      </select>
      <details>
        <summary>More filters</summary>
        <select name="origin" aria-label="Origin">
          <option value="">All origins</option>
          <option value="server">recorded by the coordinator</option>
          <option value="client">reported by clients</option>
        </select>
        <label>
          Since <input name="since" type="datetime-local" />
        </label>
        <label>
          Until <input name="until" type="datetime-local" />
        </label>
      </details>
      <button type="submit">Show</button>
    </form>
  )
}
