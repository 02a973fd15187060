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
import { Moment } from '../views/timeline/moment.tsx'
import { Notes } from '../views/timeline/notes.tsx'
import { Plot } from '../views/timeline/plot.tsx'
import { useTimelineData } from '../views/timeline/use-data.ts'
import { useTimelineView } from '../views/timeline/use-view.ts'
import { useWidth } from '../views/use-width.ts'

export function TimelinePage({ box }: { box: Box }) {
  const control = useTimelineView(box.observedState)
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
  return (
    <>
      <Controls view={view} change={change} />
      <Plot
        element={element}
        width={width}
        view={view}
        charts={data.charts}
        layout={layout}
        selected={merged.find(({ id }) => id === openId.value) ?? null}
        change={change}
        onSelect={(at, itemId) => {
          openId.value = itemId
          select(at)
        }}
      />
      <Hints box={box} range={view.range} />
      <Notes box={box} range={view.range} layout={layout} data={data} />
      {data.errors.map((error) => (
        <Problem key={error.code} error={error} />
      ))}
      {view.at !== null && (
        <Moment
          box={box}
          at={view.at}
          onClose={() => {
            change(clearMoment(view))
            focusHeading()
          }}
        />
      )}
      <section aria-labelledby="items">
        <h2 id="items">Events in this range</h2>
        <ItemList items={merged} openId={openId.value} onSelectMoment={select} />
      </section>
    </>
  )
}
