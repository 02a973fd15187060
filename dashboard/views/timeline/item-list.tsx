// The items of the range as a list, newest first: each can be opened with the keyboard and shows its details.
import { useSignal } from '@preact/signals'
import type { IconNode } from 'lucide'
import type { ComponentChildren } from 'preact'
import { getCoordinatorTime } from '../../data/live.ts'
import { formatLocalClock, formatLocalDate, formatLocalTime } from '../../data/local-time.ts'
import { type ItemKind, KIND_LABELS, type TimelineItem } from '../../data/timeline/items.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import { ActivityIcon, CameraIcon, MessagesIcon, TerminalIcon } from '../../design/icons.ts'

const PAGE_SIZE = 50
const TITLE_CHARS = 200

export type ItemListProps = {
  items: readonly TimelineItem[]
  onSelectMoment(at: number): void
}

export function ItemList({ items, onSelectMoment }: ItemListProps) {
  const count = useSignal(PAGE_SIZE)
  if (items.length === 0) return <p>Nothing happened in this range.</p>
  const rest = items.length - count.value
  return (
    <>
      <ol class="items">
        {items.slice(0, count.value).map((item) => (
          <Item key={item.id} item={item} onSelectMoment={onSelectMoment} />
        ))}
      </ol>
      {rest > 0 && (
        <p>
          {rest} more {rest === 1 ? 'item is' : 'items are'} not shown.{' '}
          <button
            type="button"
            onClick={() => {
              count.value += PAGE_SIZE
            }}
          >
            Show {Math.min(PAGE_SIZE, rest)} more
          </button>
        </p>
      )}
    </>
  )
}

type ItemProps = { item: TimelineItem; onSelectMoment(at: number): void }

const ICONS: Record<ItemKind, IconNode> = {
  state: ActivityIcon,
  command: TerminalIcon,
  prompt: MessagesIcon,
  snapshot: CameraIcon,
}

function Item({ item, onSelectMoment }: ItemProps) {
  const title = showHidden(item.title)
  return (
    <li class={item.tone}>
      <details>
        <summary>
          <Icon of={ICONS[item.kind]} />
          <small class="visually-hidden">{KIND_LABELS[item.kind]} </small>
          <span class="title">
            {title.slice(0, TITLE_CHARS)}
            {title.length > TITLE_CHARS && '…'}
          </span>{' '}
          <span class="result">{showHidden(item.result)}</span>{' '}
          <time dateTime={new Date(item.from).toISOString()} title={formatLocalTime(item.from)}>
            {formatMoment(item.from)}
          </time>
        </summary>
        {title.length > TITLE_CHARS && <p>{title}</p>}
        <ItemDetails item={item}>
          <button type="button" onClick={() => onSelectMoment(item.from)}>
            Show the processes of this moment
          </button>
        </ItemDetails>
      </details>
    </li>
  )
}

/** The clock, and the date of another day than today. */
const formatMoment = (at: number): string =>
  formatLocalDate(at) === formatLocalDate(getCoordinatorTime())
    ? formatLocalClock(at, true)
    : formatLocalTime(at)

/** @param props.children further actions */
export function ItemDetails({ item, children }: { item: TimelineItem; children?: ComponentChildren }) {
  return (
    <>
      <dl>
        {item.details.map(({ name, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{showHidden(text)}</dd>
          </div>
        ))}
      </dl>
      {(item.link !== null || children !== undefined) && (
        <p class="tools">
          {item.link !== null && (
            <a class="button" href={item.link.path}>
              {item.link.label}
            </a>
          )}
          {children}
        </p>
      )}
    </>
  )
}
