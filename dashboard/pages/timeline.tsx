// The page Timeline of a box: usage, state changes, commands, prompts and snapshots on one time axis.
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import { now, session } from '../data/live.ts'
import { mergeItems, selectItems } from '../data/timeline/items.ts'
import { getPlotWidth } from '../data/timeline/plot.ts'
import { clearMoment, selectMoment } from '../data/timeline/range.ts'
import { layOutRows } from '../data/timeline/rows.ts'
import { focusHeading } from '../views/focus-heading.ts'
import { Problem } from '../views/problem.tsx'
import { Controls, Hints } from '../views/timeline/controls.tsx'
import { ItemList } from '../views/timeline/item-list.tsx'
import { Notes } from '../views/timeline/notes.tsx'
import { Overview } from '../views/timeline/overview.tsx'
import { Plot } from '../views/timeline/plot.tsx'
import { Selection } from '../views/timeline/selection.tsx'
import { useTimelineData } from '../views/timeline/use-data.ts'
import { useTimelineView } from '../views/timeline/use-view.ts'
import { useWidth } from '../views/use-width.ts'

export function TimelinePage({ box }: { box: Box }) {
  const control = useTimelineView(box)
  const data = useTimelineData(box, control.loaded.value)
  const element = useRef<HTMLDivElement>(null)
  const width = useWidth(element)
  const openId = useSignal<string | null>(null)
  const view = control.view.value
  const { change } = control
  const items = selectItems(data.sources, view.range, {
    userId: session.value?.user.id ?? null,
    names: data.names,
    now: now.value,
    boxName: box.hostname,
  })
  const merged = mergeItems(items)
  const layout = layOutRows(items, { range: view.range, width: getPlotWidth(width), now: now.value })
  const select = (at: number) => change(selectMoment(view, at, now.value))
  const chosen = merged.find(({ id }) => id === openId.value) ?? null
  return (
    <div class="timeline">
      <Controls box={box} view={view} change={change} />
      <div>
        <Overview box={box} states={items.state} width={width} view={view} change={change} />
        <Plot
          element={element}
          width={width}
          view={view}
          charts={data.charts}
          layout={layout}
          change={change}
          onSelect={(at, itemId) => {
            openId.value = itemId
            select(at)
          }}
        />
        <Notes box={box} range={view.range} layout={layout} data={data} />
        {data.errors.map((error) => (
          <Problem key={error.code} error={error} />
        ))}
      </div>
      {/* The description of the charts for screen readers stays beside a selection. */}
      <div class={view.at === null ? 'hints' : 'visually-hidden'}>
        <Hints />
      </div>
      {view.at !== null && (
        <Selection
          box={box}
          at={view.at}
          item={chosen}
          onClose={() => {
            openId.value = null
            change(clearMoment(view))
            focusHeading()
          }}
        />
      )}
      <section aria-labelledby="items">
        <h2 id="items">Events in this range</h2>
        <ItemList
          items={merged}
          onSelectMoment={(at) => {
            openId.value = null
            select(at)
          }}
        />
      </section>
    </div>
  )
}
