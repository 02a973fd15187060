// Schemas of the links that download a file of a box once. Not in the spec.
import * as z from 'zod'
import { timestampSchema } from './common.ts'

export const createDownloadLinkRequestSchema = z
  .strictObject({
    path: z
      .string()
      .min(1, 'must be a path')
      .max(4096, 'must have at most 4096 characters')
      .refine((text) => !/[\0\n]/.test(text), 'must not contain a NUL character or a newline')
      .meta({ description: 'of a file or directory: absolute, or relative to the home directory' }),
  })
  .meta({ id: 'CreateDownloadLink' })

export const downloadLinkSchema = z
  .object({
    url: z.string().meta({ description: 'a path on the coordinator, for GET with the same credential' }),
    expiresAt: timestampSchema,
  })
  .meta({ id: 'DownloadLink' })
export type DownloadLink = z.infer<typeof downloadLinkSchema>
