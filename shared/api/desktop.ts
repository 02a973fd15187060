// Schemas of the desktop of a box. POST /desktop/stop is in the spec (§4.17), the other routes are not.
import * as z from 'zod'
import { DESKTOP_MODES, DESKTOP_PROGRAMS } from '../field-values.ts'
import { LIMITS } from '../limits.ts'
import { boundedArray, integerBetween, reportedTextSchema, timestampSchema } from './common.ts'

const { width, height, dpi } = LIMITS.desktop

export const desktopModeSchema = z.enum(DESKTOP_MODES, `must be one of ${DESKTOP_MODES.join(', ')}`)
export type DesktopMode = z.infer<typeof desktopModeSchema>

const URL_RULE = 'must be an http or https URL of at most 2048 characters'
/** An argument of a program cannot contain NUL, and a parser of URLs ignores other control characters. */
const isWebUrl = (text: string): boolean =>
  !/\p{Cc}/u.test(text) && /^https?:$/.test(URL.parse(text)?.protocol ?? '')

/** POST /desktop/start. */
export const desktopStartSchema = z
  .object({
    mode: desktopModeSchema.optional().meta({
      description:
        'desktop, the default: a window manager and a terminal; browser: Chromium on the whole screen',
    }),
    width: integerBetween(width.min, width.max)
      .optional()
      .meta({ description: `pixels; default ${width.default}` }),
    height: integerBetween(height.min, height.max)
      .optional()
      .meta({ description: `pixels; default ${height.default}` }),
    dpi: integerBetween(dpi.min, dpi.max)
      .optional()
      .meta({ description: `dots per inch; default ${dpi.default}` }),
    url: z
      .string()
      .max(2048, URL_RULE)
      .refine(isWebUrl, URL_RULE)
      .optional()
      .meta({ description: 'the page that mode browser opens; default: an empty page' }),
  })
  .refine(({ mode, url }) => url === undefined || mode === 'browser', {
    path: ['url'],
    message: 'must be given with mode browser only',
  })
  .meta({ id: 'DesktopStart' })
export type DesktopStart = z.infer<typeof desktopStartSchema>

/** The request to the agent. */
export const agentDesktopStartSchema = desktopStartSchema.safeExtend({
  boxEnv: z.record(z.string(), z.string()).optional(),
})
export type AgentDesktopStart = z.infer<typeof agentDesktopStartSchema>

/** POST /desktop/stop, and the query of DELETE /desktop. */
export const desktopStopSchema = z
  .object({ mode: desktopModeSchema.optional().meta({ description: 'default desktop' }) })
  .meta({ id: 'DesktopStop' })
export const agentDesktopStopSchema = z.object({ mode: desktopModeSchema })

const installedProgramSchema = z.object({
  role: z.enum(DESKTOP_PROGRAMS),
  program: reportedTextSchema(64)
    .nullable()
    .meta({ description: 'name of the installed program; null: none is installed' }),
})

export const desktopProgramSchema = installedProgramSchema
  .extend({
    package: z.string().meta({ description: 'the Debian package that has one' }),
    requiredFor: z.array(z.enum(DESKTOP_MODES)).meta({
      description: 'modes that do not start without it; empty: optional',
    }),
  })
  .meta({ id: 'DesktopProgram' })
export type DesktopProgram = z.infer<typeof desktopProgramSchema>

export const desktopSessionSchema = z
  .object({
    display: z
      .string()
      .regex(/^:\d{1,5}$/)
      .meta({ description: 'value of DISPLAY for commands on the box' }),
    authority: reportedTextSchema(4096).meta({ description: 'value of XAUTHORITY for commands on the box' }),
    modes: boundedArray(z.enum(DESKTOP_MODES), DESKTOP_MODES.length).meta({ description: 'running modes' }),
    width: z.int().min(width.min).max(width.max),
    height: z.int().min(height.min).max(height.max),
    dpi: z.int().min(dpi.min).max(dpi.max),
    viewers: z.int().min(0).max(LIMITS.desktop.viewers).meta({ description: 'connected viewers' }),
    startedAt: timestampSchema,
  })
  .meta({ id: 'DesktopSession' })
export type DesktopSession = z.infer<typeof desktopSessionSchema>

/** The response of the agent. */
export const agentDesktopStatusSchema = z.object({
  ok: z.literal(true),
  type: z.literal('desktop.status'),
  programs: boundedArray(installedProgramSchema, DESKTOP_PROGRAMS.length),
  session: desktopSessionSchema.nullable().meta({ description: 'null: no desktop is running' }),
})
export type AgentDesktopStatus = z.infer<typeof agentDesktopStatusSchema>

export const desktopStatusSchema = agentDesktopStatusSchema
  .extend({
    programs: z.array(desktopProgramSchema),
    install: z.object({ desktop: z.string().nullable(), browser: z.string().nullable() }).meta({
      description:
        'per mode, the command for root that installs what is missing on Debian and Ubuntu; null: nothing',
    }),
    installOn: z.enum(['coordinator', 'box']).meta({
      description:
        'where the command is to be run: coordinator, its machine, whose programs the box uses; box, in the box',
    }),
  })
  .meta({ id: 'DesktopStatus' })
export type DesktopStatus = z.infer<typeof desktopStatusSchema>

export const desktopStartedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('desktop.started'),
    mode: desktopModeSchema,
    alreadyRunning: z.boolean().meta({ description: 'the mode was running before the request' }),
    session: desktopSessionSchema,
  })
  .meta({ id: 'DesktopStarted' })
export type DesktopStarted = z.infer<typeof desktopStartedSchema>

/** The response of the agent, and that of DELETE /desktop. */
export const desktopStoppedSchema = z
  .object({
    ok: z.literal(true),
    type: z.literal('desktop.stopped'),
    mode: desktopModeSchema,
    wasRunning: z.boolean(),
  })
  .meta({ id: 'DesktopStopped' })
export type DesktopStopped = z.infer<typeof desktopStoppedSchema>

/** The response of POST /desktop/stop (spec §4.17). */
export const desktopStopResponseSchema = z
  .object({
    ok: z.literal(true),
    box: z.string().meta({ description: 'the name of the box' }),
    mode: desktopModeSchema,
  })
  .meta({ id: 'DesktopStopResponse' })
