// Compares the stored form of metrics (coordinator/history/metrics/codec.ts) with compressed JSON, on the chunks of one box.
// `node bench/metrics-codec.ts` runs only this benchmark.
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import {
  type Chunk,
  type Column,
  copyInto,
  createPeriodChunk,
  ensureGroup,
  KINDS,
  type Kind,
} from '../coordinator/history/metrics/chunk.ts'
import { decodeChunk, encodeChunk } from '../coordinator/history/metrics/codec.ts'
import { toChunk } from '../coordinator/history/metrics/samples.ts'
import { SAMPLE_SECONDS } from '../shared/report-limits.ts'
import { createBusyBox } from './support/busy-box.ts'
import { formatNumber, median, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const HOUR = 3600
/** The chunks of 30 days, without the rollups. */
const CHUNK_COUNT = 30 * 24
const ROUNDS = 15
/** The compression is fast for the current hour, which is decoded and encoded for each sample. */
const LEVEL = { current: 1, closed: 9 }

type Codec = {
  name: string
  encode(chunk: Chunk, level: number): Buffer
  decode(data: Buffer): Chunk
}

const CODECS: Codec[] = [
  {
    name: 'the codec: differences as variable-length integers',
    encode: encodeChunk,
    decode: (data) => decodeChunk(data, SAMPLE_SECONDS),
  },
  { name: 'compressed JSON of the differences', ...createJsonCodec(toDifferences, addDifferences) },
  { name: 'compressed JSON of the values', ...createJsonCodec(keepValues, keepValues) },
]

type Conversion = (column: Column) => Column

/** The columns of a group by series. Series without values are left out, as the codec does. */
type JsonGroup = [kind: Kind, name: string, columns: Record<string, Column>]

function createJsonCodec(toStored: Conversion, fromStored: Conversion): Pick<Codec, 'encode' | 'decode'> {
  return {
    encode(chunk, level) {
      const groups: JsonGroup[] = []
      for (const kind of KINDS)
        for (const [name, group] of chunk[kind]) {
          const known = Object.entries(group).filter(([, { avg }]) => avg.some((value) => value !== null))
          const columns = known.map(([series, { avg }]) => [series, toStored(avg)])
          groups.push([kind, name, Object.fromEntries(columns)])
        }
      return deflateRawSync(JSON.stringify(groups), { level })
    },
    decode(data) {
      const chunk = createPeriodChunk(SAMPLE_SECONDS)
      const groups: JsonGroup[] = JSON.parse(inflateRawSync(data).toString())
      for (const [kind, name, columns] of groups) {
        const group = ensureGroup(chunk, kind, name) ?? {}
        for (const [series, stored] of Object.entries(columns)) {
          const avg = fromStored(stored)
          group[series] = { avg, max: avg }
        }
      }
      return chunk
    },
  }
}

function keepValues(column: Column): Column {
  return column
}

function toDifferences(column: Column): Column {
  let previous = 0
  return column.map((value) => {
    if (value === null) return null
    const difference = value - previous
    previous = value
    return difference
  })
}

function addDifferences(column: Column): Column {
  let sum = 0
  return column.map((difference) => {
    if (difference === null) return null
    sum += difference
    return sum
  })
}

/** Chunks of samples: one per hour. */
function createChunks(): Chunk[] {
  const sampleAt = createBusyBox(1)
  return Array.from({ length: CHUNK_COUNT }, (_, hour) => {
    const chunk = createPeriodChunk(SAMPLE_SECONDS)
    for (let slot = 0; slot < chunk.slots; slot++)
      copyInto(chunk, toChunk(sampleAt(hour * HOUR + slot * SAMPLE_SECONDS)), slot)
    return chunk
  })
}

/** The CPU time of `work` for all items, in milliseconds. */
function measureCpu<T>(items: readonly T[], work: (item: T) => unknown): number {
  const before = process.cpuUsage()
  for (const item of items) work(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

export function benchMetricsCodec(): Table {
  const chunks = createChunks()
  const candidates = CODECS.map((codec) => ({
    codec,
    current: chunks.map((chunk) => codec.encode(chunk, LEVEL.current)),
    closed: chunks.map((chunk) => codec.encode(chunk, LEVEL.closed)),
    encodeMs: [] as number[],
    decodeMs: [] as number[],
  }))
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++)
    for (const { codec, current, encodeMs, decodeMs } of candidates) {
      encodeMs.push(measureCpu(chunks, (chunk) => codec.encode(chunk, LEVEL.current)))
      decodeMs.push(measureCpu(current, codec.decode))
    }
  const sumBytes = (buffers: Buffer[]) => buffers.reduce((sum, { length }) => sum + length, 0)
  const results = candidates.map(({ codec, closed, encodeMs, decodeMs }) => ({
    name: codec.name,
    bytes: sumBytes(closed),
    encode: median(encodeMs) / CHUNK_COUNT,
    decode: median(decodeMs) / CHUNK_COUNT,
  }))
  const [codec] = results
  if (codec === undefined) throw new Error('no codecs to compare')
  return {
    title: `Stored form of the samples of one box in 30 days: ${CHUNK_COUNT} chunks of one hour`,
    columns: [
      '',
      'stored bytes (MiB)',
      'CPU to encode a chunk (ms)',
      'CPU to decode a chunk (ms)',
      'bytes ÷ codec',
      'encode ÷ codec',
      'decode ÷ codec',
    ],
    rows: results.map(({ name, bytes, encode, decode }) => [
      name,
      formatNumber(toMiB(bytes)),
      formatNumber(encode),
      formatNumber(decode),
      formatNumber(bytes / codec.bytes),
      formatNumber(encode / codec.encode),
      formatNumber(decode / codec.decode),
    ]),
  }
}

if (import.meta.main) console.log(formatMarkdown(benchMetricsCodec()))
