// The items of the range as a list, newest first: each can be opened with the keyboard and shows its details.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { formatLocalTime } from '../../data/local-time.ts'
import { KIND_LABELS, type TimelineItem } from '../../data/timeline/items.ts'
import { showHidden } from '../../data/visible-text.ts'

const PAGE_SIZE = 50
const TITLE_CHARS = 200

export type ItemListProps = {
  items: readonly TimelineItem[]
  /** The item that was selected in the chart. */
  openId: string | null
  onSelectMoment(at: number): void
}

export function ItemList({ items, openId, onSelectMoment }: ItemListProps) {
  const count = useSignal(PAGE_SIZE)
  useEffect(() => {
    const index = items.findIndex(({ id }) => id === openId)
    if (index >= count.value) count.value = index + 1
  }, [openId])
  if (items.length === 0) return <p>Nothing happened in this range.</p>
  const rest = items.length - count.value
  return (
    <>
      <ol class="items">
        {items.slice(0, count.value).map((item) => (
          <Item key={item.id} item={item} isOpen={item.id === openId} onSelectMoment={onSelectMoment} />
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

type ItemProps = { item: TimelineItem; isOpen: boolean; onSelectMoment(at: number): void }

function Item({ item, isOpen, onSelectMoment }: ItemProps) {
  const title = showHidden(item.title)
  return (
    <li class={item.tone}>
      <details open={isOpen}>
        <summary>
          <time dateTime={new Date(item.from).toISOString()}>{formatLocalTime(item.from)}</time>{' '}
          <small>{KIND_LABELS[item.kind]}</small>{' '}
          <span class="title">
            {title.slice(0, TITLE_CHARS)}
            {title.length > TITLE_CHARS && '…'}
          </span>{' '}
          <span class="result">{showHidden(item.result)}</span>
        </summary>
        {title.length > TITLE_CHARS && <p>{title}</p>}
        <dl>
          {item.details.map(({ name, text }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{showHidden(text)}</dd>
            </div>
          ))}
        </dl>
        <p class="tools">
          {item.link !== null && <a href={item.link.path}>{item.link.label}</a>}
          <button type="button" onClick={() => onSelectMoment(item.from)}>
            Show the processes of this moment
          </button>
        </p>
      </details>
    </li>
  )
}
