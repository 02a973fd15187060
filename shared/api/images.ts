// Schemas of images and of what the regions can do. Not in the spec.
import * as z from 'zod'
import { IMAGE_PATTERN } from '../field-values.ts'
import { regionSchema, timestampSchema } from './common.ts'

export const IMAGE_RULE =
  'must be the name of an image, such as debian:12 or registry.example.com/team/tools@sha256:…, with at most 255 characters'
/** The provider of the region checks the name further. */
export const imageReferenceSchema = z.string().regex(IMAGE_PATTERN, IMAGE_RULE)

export const regionInfoSchema = z
  .object({
    region: regionSchema,
    isDefault: z.boolean().meta({ description: 'of boxes that are created without a region' }),
    provider: z.string().meta({ description: 'local, docker, podman or incus' }),
    images: z.boolean().meta({ description: 'whether boxes have an image, with their own root file system' }),
    root: z.boolean().meta({ description: 'whether the user of a box is root, and can install packages' }),
    freeze: z.boolean().nullable().meta({
      description: 'whether the processes of a suspended box keep their memory; null: not known yet',
    }),
    resize: z.enum(['live', 'restart']).meta({
      description:
        'live: processes continue when the tier changes, where the machine allows it; restart: they are terminated',
    }),
    snapshots: z.boolean().meta({ description: 'whether snapshots, templates and forks are possible' }),
    defaultImage: z.string().nullable().meta({
      description: 'of a box that is created without one; null: the region has no images',
    }),
    description: z.string().meta({ description: 'how boxes are isolated, in words' }),
  })
  .meta({ id: 'Region', description: 'A region, and what its boxes can do' })
export type RegionInfo = z.infer<typeof regionInfoSchema>
export const regionListSchema = z.object({ regions: z.array(regionInfoSchema) })
export type RegionList = z.infer<typeof regionListSchema>

export const imageSchema = z
  .object({
    reference: z.string().meta({ description: 'the name under which boxes use the image' }),
    region: regionSchema,
    digest: z.string().nullable().meta({
      description: 'sha256:… of the content in its registry; null: the image comes from no registry',
    }),
    sizeBytes: z.int(),
    createdAt: timestampSchema.nullable().meta({ description: 'when the image was built' }),
  })
  .meta({ id: 'Image', description: 'An image that new boxes of the region use without a download' })
export type Image = z.infer<typeof imageSchema>

export const listImagesQuerySchema = z.object({
  region: regionSchema.optional().meta({ description: 'default: every region with images' }),
})
export const imageListSchema = z.object({
  images: z.array(imageSchema),
  unavailable: z
    .array(z.object({ region: regionSchema, message: z.string() }))
    .meta({ description: 'the regions whose engine does not answer' }),
})
export type ImageList = z.infer<typeof imageListSchema>

export const pullImageRequestSchema = z
  .strictObject({
    image: imageReferenceSchema,
    region: regionSchema.optional().meta({
      description: 'default: the default region, or the first one with images where that has none',
    }),
  })
  .meta({ id: 'PullImage' })
export type PullImageRequest = z.infer<typeof pullImageRequestSchema>
export const imageResponseSchema = z.object({ image: imageSchema })

/** The data of the events `progress` of POST /images. */
export const pullProgressSchema = z
  .object({
    layers: z.array(
      z.object({
        id: z.string(),
        status: z.enum(['waiting', 'downloading', 'unpacking', 'complete']),
        currentBytes: z.int(),
        totalBytes: z.int().nullable().meta({ description: 'null: not known' }),
      }),
    ),
  })
  .meta({ id: 'PullProgress' })
export type PullProgress = z.infer<typeof pullProgressSchema>

export const removeImageQuerySchema = z.object({
  image: imageReferenceSchema,
  region: regionSchema.optional().meta({
    description: 'default: the default region, or the first one with images where that has none',
  }),
})
/** Error codes by field of the requests on images. */
export const IMAGE_ERROR_CODES = { image: 'invalid_image', region: 'invalid_region' } as const
