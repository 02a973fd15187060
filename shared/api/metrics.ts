// Schemas of box metrics (spec §4.3): the series with their units, the agent's samples, and GET /boxes/{id}/metrics.

import * as z from 'zod'
import { MAX_SAMPLE_GROUPS, SAMPLE_SECONDS } from '../report-limits.ts'
import { isUuid } from '../uuid.ts'
import { boundedArray, reportedIntegerSchema, reportedTextSchema, timestampSchema } from './common.ts'
import { queryInstantSchema } from './request-times.ts'

/** Bucket lengths in seconds: a sample, and the two rollups. */
export const METRICS_RESOLUTIONS = [SAMPLE_SECONDS, 300, 3600] as const
export type MetricsResolution = (typeof METRICS_RESOLUTIONS)[number]

/** `unit`: of the API. `step`: stored values are rounded to multiples of it. */
export type Series = { unit: string; step: number; description: string }

const KiB = 1024

/** The series of the whole box. */
export const BOX_SERIES = {
  cpu_pct: { unit: 'percent', step: 0.1, description: 'CPU time used, 0 to 100 percent of cpu_count' },
  cpu_count: {
    unit: 'CPUs',
    step: 0.01,
    description: 'the CPU limit of the box, or the CPUs of its machine',
  },
  mem_used_bytes: { unit: 'bytes', step: KiB, description: 'memory in use that the kernel cannot reclaim' },
  mem_total_bytes: {
    unit: 'bytes',
    step: 1,
    description: 'the memory limit of the box, or the memory of its machine',
  },
  load1: {
    unit: 'processes',
    step: 0.01,
    description: 'load average over 1 minute; null where the kernel is shared',
  },
  load5: {
    unit: 'processes',
    step: 0.01,
    description: 'load average over 5 minutes; null where the kernel is shared',
  },
  load15: {
    unit: 'processes',
    step: 0.01,
    description: 'load average over 15 minutes; null where the kernel is shared',
  },
  process_count: { unit: 'processes', step: 0.1, description: 'processes of the box, without zombies' },
  listener_count: { unit: 'ports', step: 0.1, description: 'listening TCP ports of the box' },
  disk_read_bytes_per_sec: { unit: 'bytes/s', step: 1, description: 'read from disk by the box' },
  disk_write_bytes_per_sec: {
    unit: 'bytes/s',
    step: 1,
    description: 'written by the box, counted when the data becomes dirty',
  },
} as const satisfies Record<string, Series>

/** The series of each file system. Throughput is null where the kernel is shared. */
export const FILE_SYSTEM_SERIES = {
  used_bytes: { unit: 'bytes', step: 512, description: 'space in use' },
  total_bytes: {
    unit: 'bytes',
    step: 1,
    description: 'the disk space of the tier, or the size of the file system',
  },
  read_bytes_per_sec: { unit: 'bytes/s', step: 1, description: 'read from its device' },
  write_bytes_per_sec: { unit: 'bytes/s', step: 1, description: 'written to its device' },
} as const satisfies Record<string, Series>

/** The series of each network interface. Boxes that share the host's network have none. */
export const INTERFACE_SERIES = {
  rx_bytes_per_sec: { unit: 'bytes/s', step: 1, description: 'received' },
  tx_bytes_per_sec: { unit: 'bytes/s', step: 1, description: 'sent' },
} as const satisfies Record<string, Series>

export type BoxSeriesName = keyof typeof BOX_SERIES
export type FileSystemSeriesName = keyof typeof FILE_SYSTEM_SERIES
export type InterfaceSeriesName = keyof typeof INTERFACE_SERIES

const namesOf = <K extends string>(series: Record<K, Series>): K[] => Object.keys(series) as K[]
const record = <K extends string, V extends z.ZodType>(names: K[], value: V) =>
  z.object(Object.fromEntries(names.map((name) => [name, value])) as Record<K, V>)

/** A mount point, or the name of an interface. */
const reportedNameSchema = reportedTextSchema(256).min(1)

const byteCountSchema = reportedIntegerSchema.nullable()
const countSchema = z.int().min(0).max(1e9).nullable()
const fraction = (max: number) => z.number().min(0).max(max).nullable()

/** One sample. null: unknown, or a figure of the host that is not the box's. */
export const metricsSampleSchema = z.object({
  type: z.literal('metrics.sample'),
  start: z
    .int()
    .min(0)
    .max(2 ** 40)
    .multipleOf(SAMPLE_SECONDS)
    .meta({ description: 'epoch seconds: the sample describes the SAMPLE_SECONDS from here on' }),
  values: z.object({
    cpu_pct: fraction(100),
    cpu_count: fraction(65_536),
    mem_used_bytes: byteCountSchema,
    mem_total_bytes: byteCountSchema,
    load1: fraction(1e6),
    load5: fraction(1e6),
    load15: fraction(1e6),
    process_count: countSchema,
    listener_count: countSchema,
    disk_read_bytes_per_sec: byteCountSchema,
    disk_write_bytes_per_sec: byteCountSchema,
  } satisfies Record<BoxSeriesName, z.ZodType>),
  fs: boundedArray(
    record(namesOf(FILE_SYSTEM_SERIES), byteCountSchema).extend({ mount: reportedNameSchema }),
    MAX_SAMPLE_GROUPS,
  ),
  ifaces: boundedArray(
    record(namesOf(INTERFACE_SERIES), byteCountSchema).extend({ name: reportedNameSchema }),
    MAX_SAMPLE_GROUPS,
  ),
})
export type MetricsSample = z.infer<typeof metricsSampleSchema>

export const metricsQuerySchema = z.object({
  from: queryInstantSchema.optional().meta({ description: 'default: one hour before `to`' }),
  to: queryInstantSchema.optional().meta({ description: 'default: now' }),
})
export type MetricsQuery = z.infer<typeof metricsQuerySchema>

/** The step of the CPU of several boxes, in seconds. */
export const CPU_STEP_SECONDS = 300
const MAX_CPU_BOXES = 100

export const cpuQuerySchema = z.object({
  boxes: z
    .string()
    .toLowerCase()
    .transform((text) => text.split(','))
    .refine((ids) => ids.length <= MAX_CPU_BOXES, `must have at most ${MAX_CPU_BOXES} ids`)
    .refine((ids) => ids.every(isUuid), 'must be ids of boxes, separated by commas')
    .meta({ description: `up to ${MAX_CPU_BOXES} ids, separated by commas` }),
})

export const cpuSchema = z.object({
  from: timestampSchema,
  res: z.literal(CPU_STEP_SECONDS),
  boxes: z.record(z.string(), z.array(z.number().nullable())).meta({
    description:
      'by box id: cpu_pct of the last hour, as in Metrics, one value per `res` seconds; without boxes that the caller may not see',
  }),
})
export type CpuOfBoxes = z.infer<typeof cpuSchema>

const valuesSchema = z
  .object({
    avg: z.array(z.number().nullable()).meta({ description: 'the mean of the samples in each bucket' }),
    max: z.array(z.number().nullable()).meta({ description: 'the largest sample in each bucket' }),
  })
  .meta({
    id: 'MetricsValues',
    description: 'One value per bucket. null: no sample, or not known for this box.',
  })
export type MetricsValues = z.infer<typeof valuesSchema>

/** The values of each series, with its unit. */
const seriesSchema = <K extends string>(series: Record<K, Series>) =>
  z.object(
    Object.fromEntries(
      namesOf(series).map((name) => {
        const { unit, description } = series[name]
        return [name, valuesSchema.meta({ description: `In ${unit}: ${description}.`, 'x-unit': unit })]
      }),
    ) as Record<K, typeof valuesSchema>,
  )

export const metricsSchema = z
  .object({
    v: z.literal(1).meta({ description: 'version of this format' }),
    res: z
      .literal(METRICS_RESOLUTIONS)
      .meta({ description: 'seconds per bucket; follows from the time span' }),
    from: timestampSchema.meta({ description: 'the start of the range, after limiting it to 30 days' }),
    to: timestampSchema.meta({ description: 'the end of the range, not after now' }),
    buckets: z.array(z.int()).meta({
      description:
        'The start of each bucket, in seconds since the epoch: multiples of res, ascending, without gaps. The last bucket may not be complete.',
    }),
    series: seriesSchema(BOX_SERIES).meta({ description: 'The series of the whole box.' }),
    fs: z
      .array(
        seriesSchema(FILE_SYSTEM_SERIES).extend({
          mount: z.string().meta({ description: 'the mount point' }),
        }),
      )
      .meta({ description: 'The file systems with samples in the range, by mount point.' }),
    ifaces: z
      .array(
        seriesSchema(INTERFACE_SERIES).extend({
          name: z.string().meta({ description: 'the name of the interface, such as eth0' }),
        }),
      )
      .meta({
        description:
          'The network interfaces with samples in the range, by name. Empty for a box that shares the network of its host.',
      }),
  })
  .meta({ id: 'Metrics' })
export type Metrics = z.infer<typeof metricsSchema>
