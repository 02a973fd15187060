// Encodes chunks for the database. A chunk is a version, a JSON header with the names, and one list of integers per column;
// all of it is compressed.
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { MetricsResolution } from '../../../shared/api/metrics.ts'
import {
  type Chunk,
  type Column,
  createPeriodChunk,
  ensureGroup,
  KINDS,
  type Kind,
  MAX_GROUPS,
  type SeriesColumns,
} from './chunk.ts'
import { createVarintReader, createVarintWriter, type VarintReader, type VarintWriter } from './varint.ts'

const VERSION = 1
/** More than the largest chunk has: 8 bytes for each of 288 buckets in 400 columns. */
const MAX_DECODED_BYTES = 2 * 1024 * 1024
const MAX_HEADER_ENTRIES = 1 + 2 * MAX_GROUPS

/**
 * The header of a usual box, with which the compressor starts: about a tenth of the size. Stored chunks can only be decoded
 * with the same bytes, so a change needs a new VERSION.
 */
const DICTIONARY = Buffer.from(
  '[["box","",["cpu_pct","cpu_count","mem_used_bytes","mem_total_bytes","load1","load5","load15","process_count","listener_count","disk_read_bytes_per_sec","disk_write_bytes_per_sec"]],["fs","/",["used_bytes","total_bytes","read_bytes_per_sec","write_bytes_per_sec"]],["ifaces","eth0",["rx_bytes_per_sec","tx_bytes_per_sec"]],["ifaces","lo",["rx_bytes_per_sec","tx_bytes_per_sec"]]]',
)

/** The groups, and the series of each that have values. The columns follow in this order. */
type Header = [kind: Kind, name: string, series: string[]][]

/** The stored bytes are not those of a chunk. */
export class DamagedChunkError extends Error {
  override name = 'DamagedChunkError'
}

/** @param level 1 (fast) to 9 (small) */
export function encodeChunk(chunk: Chunk, level: number): Buffer {
  const header: Header = []
  const columns: Column[] = []
  for (const kind of KINDS) {
    for (const [name, group] of chunk[kind]) {
      const names: string[] = []
      header.push([kind, name, names])
      for (const [series, seriesColumns] of Object.entries(group)) {
        if (seriesColumns.avg.every((value) => value === null)) continue
        names.push(series)
        columns.push(...listColumns(seriesColumns))
      }
    }
  }
  const writer = createVarintWriter()
  const headerBytes = Buffer.from(JSON.stringify(header))
  writer.write(VERSION)
  writer.write(headerBytes.length)
  writer.writeBytes(headerBytes)
  for (const column of columns) writeColumn(writer, column)
  return deflateRawSync(writer.finish(), { level, dictionary: DICTIONARY })
}

const listColumns = ({ avg, max }: SeriesColumns): Column[] => (max === avg ? [avg] : [avg, max])

/** Its length without the nulls at the end. Then per bucket 0 for null, else the zigzag-encoded difference plus 1. */
function writeColumn(writer: VarintWriter, column: Column): void {
  let length = column.length
  while (length > 0 && column[length - 1] === null) length -= 1
  writer.write(length)
  let previous = 0
  for (let slot = 0; slot < length; slot += 1) {
    const value = column[slot] ?? null
    if (value === null) {
      writer.write(0)
      continue
    }
    const difference = value - previous
    writer.write(difference < 0 ? -2 * difference : 2 * difference + 1)
    previous = value
  }
}

/** Ignores unknown series. Throws DamagedChunkError. */
export function decodeChunk(data: Uint8Array, res: MetricsResolution): Chunk {
  try {
    return decode(data, res)
  } catch (cause) {
    throw new DamagedChunkError('stored metrics cannot be decoded', { cause })
  }
}

function decode(data: Uint8Array, res: MetricsResolution): Chunk {
  const options = { maxOutputLength: MAX_DECODED_BYTES, dictionary: DICTIONARY }
  const reader = createVarintReader(inflateRawSync(data, options))
  if (reader.read() !== VERSION) throw new RangeError('unknown version')
  const header = parseHeader(Buffer.from(reader.readBytes(reader.read())).toString())
  const chunk = createPeriodChunk(res)
  for (const [kind, name, names] of header) {
    const group = ensureGroup(chunk, kind, name)
    for (const series of names) {
      const known = group !== undefined && Object.hasOwn(group, series) ? group[series] : undefined
      const columns = known ?? createUnknownSeries(chunk)
      for (const column of listColumns(columns)) readColumn(reader, column)
    }
  }
  return chunk
}

/** Takes the values of a series that this version does not know. */
function createUnknownSeries({ slots, isRollup }: Chunk): SeriesColumns {
  const avg = new Array<null>(slots)
  return { avg, max: isRollup ? new Array<null>(slots) : avg }
}

function parseHeader(text: string): Header {
  const header: unknown = JSON.parse(text)
  if (!Array.isArray(header) || header.length > MAX_HEADER_ENTRIES) throw new RangeError('invalid header')
  for (const entry of header) {
    const [kind, name, series] = Array.isArray(entry) ? entry : []
    if (!KINDS.includes(kind) || typeof name !== 'string' || !Array.isArray(series))
      throw new RangeError('invalid header')
  }
  return header as Header
}

function readColumn(reader: VarintReader, column: Column): void {
  const length = reader.read()
  if (length > column.length) throw new RangeError('a column is too long')
  let value = 0
  for (let slot = 0; slot < length; slot += 1) {
    const encoded = reader.read()
    if (encoded === 0) continue
    value += encoded % 2 === 0 ? -encoded / 2 : (encoded - 1) / 2
    column[slot] = value
  }
}
