// The charts above the lanes, drawn by uPlot. The interaction is that of the surface above all of them.
import { useLayoutEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { type Chart, type Charts, findBucket, listIsolated } from '../../data/timeline/charts.ts'
import { PLOT_LEFT, PLOT_RIGHT } from '../../data/timeline/plot.ts'
import type { Range } from '../../data/timeline/range.ts'
import type { Tick } from '../../data/timeline/ticks.ts'
import { showHidden } from '../../data/visible-text.ts'

const HEIGHT = 64
const GRID = 'rgba(128, 128, 128, 0.3)'

export type ChartListProps = {
  data: Charts
  range: Range
  ticks: readonly Tick[]
  width: number
  /** The time whose values are shown; null: the last values. */
  time: number | null
}

export function ChartList({ data, range, ticks, width, time }: ChartListProps) {
  const bucket = time === null ? null : findBucket(data, time / 1000)
  return (
    <>
      {data.charts.map((chart) => (
        <figure key={chart.id}>
          <figcaption>
            <strong>{showHidden(chart.title)}</strong>
            {chart.lines.map(({ label, values }, index) => {
              const value = bucket === null ? values.findLast((last) => last !== null) : values[bucket]
              return (
                <span key={label} class="value">
                  <i class={`swatch line${index}`} /> {label}{' '}
                  {value === null || value === undefined ? '–' : chart.format(value)}
                </span>
              )
            })}
            {chart.limit !== null && <small>of {chart.format(chart.limit)}</small>}
          </figcaption>
          <Plot chart={chart} times={data.times} range={range} ticks={ticks} width={width} />
        </figure>
      ))}
    </>
  )
}

type PlotProps = Omit<ChartListProps, 'data' | 'time'> & { chart: Chart; times: number[] }

function Plot({ chart, times, range, ticks, width }: PlotProps) {
  const element = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  // The options of the plot read the last values.
  const current = useRef({ chart, ticks })
  current.current = { chart, ticks }
  const count = chart.lines.length

  useLayoutEffect(() => {
    const parent = element.current
    if (parent === null) return
    const created = new uPlot(createOptions(parent, count, current), createData([], []), parent)
    plot.current = created
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => created.redraw(false)
    scheme.addEventListener('change', redraw)
    return () => {
      scheme.removeEventListener('change', redraw)
      created.destroy()
    }
  }, [count])

  useLayoutEffect(() => {
    const created = plot.current
    if (created === null || width <= 0) return
    if (created.width !== width) created.setSize({ width, height: HEIGHT })
    created.setData(createData(times, chart.lines), false)
    // This also builds the lines again.
    created.setScale('x', { min: range.from / 1000, max: range.to / 1000 })
  }, [count, chart, times, range, ticks, width])

  return <div ref={element} class="chart" role="img" aria-label={describe(chart)} />
}

const createData = (times: number[], lines: Chart['lines']): uPlot.AlignedData => [
  times,
  ...lines.map(({ values }) => [...values]),
]

function describe({ title, lines, format }: Chart): string {
  const texts = lines.map(({ label, values }) => {
    const known = values.filter((value) => value !== null)
    if (known.length === 0) return `${label}: no values`
    const max = known.reduce((a, b) => Math.max(a, b))
    const mean = known.reduce((a, b) => a + b) / known.length
    return `${label}: mean ${format(mean)}, highest ${format(max)}`
  })
  return `${showHidden(title)}. ${texts.join('; ')}`
}

/** A limit outside of the scale is only in the caption. */
function drawLimit(plot: uPlot, { limit, top }: Chart, color: string): void {
  if (limit === null || limit > top) return
  const { ctx, bbox } = plot
  const y = Math.round(plot.valToPos(limit, 'y', true)) + 0.5
  ctx.save()
  ctx.strokeStyle = color
  ctx.setLineDash([2, 4])
  ctx.beginPath()
  ctx.moveTo(bbox.left, y)
  ctx.lineTo(bbox.left + bbox.width, y)
  ctx.stroke()
  ctx.restore()
}

type Current = { current: { chart: Chart; ticks: readonly Tick[] } }

function createOptions(parent: HTMLElement, lines: number, { current }: Current): uPlot.Options {
  // Canvas needs resolved colours, which depend on the scheme.
  const getTextColor = () => getComputedStyle(parent).color
  const getLineColor = (index: number) => {
    const swatch = parent.parentElement?.querySelector(`.line${index}`)
    return swatch ? getComputedStyle(swatch).color : getTextColor()
  }
  const getAreaColor = (index: number) => getLineColor(index).replace(/^rgb\((.*)\)$/, 'rgba($1, 0.16)')
  // Read when the plot is drawn: each drawing has the last values.
  const latest = () => current
  return {
    width: 0,
    height: HEIGHT,
    padding: [5, PLOT_RIGHT, 5, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false }, y: { range: () => [0, latest().chart.top] } },
    hooks: { draw: [(plot) => drawLimit(plot, latest().chart, getTextColor())] },
    axes: [
      {
        size: 0,
        splits: () => latest().ticks.map(({ at }) => at / 1000),
        values: (_plot, splits) => splits.map(() => ''),
        ticks: { show: false },
        grid: { stroke: GRID, width: 1 },
      },
      {
        size: PLOT_LEFT,
        splits: (_plot, _axis, min, max) => [min, max],
        font: '11px system-ui, sans-serif',
        stroke: getTextColor,
        values: (_plot, splits) => splits.map((value) => latest().chart.format(value)),
        ticks: { show: false },
        grid: { stroke: GRID, width: 1 },
      },
    ],
    series: [
      {},
      ...Array.from(
        { length: lines },
        (_, index): uPlot.Series => ({
          stroke: () => getLineColor(index),
          width: 1.5,
          ...(index > 0 ? { dash: [3, 3] } : { fill: () => getAreaColor(index) }),
          spanGaps: false,
          points: {
            show: true,
            size: 4,
            // A single value between two gaps is not part of a line.
            filter: (plot, series) => listIsolated([...(plot.data[series] ?? [])]),
          },
        }),
      ),
    ],
  }
}
