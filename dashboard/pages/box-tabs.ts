// The pages of a box, beside its overview. Each is a file of its own.
import type { ComponentType } from 'preact'
import type { Box } from '../../shared/api/boxes.ts'

export type BoxTabProps = { box: Box }

export const BOX_TAB_PAGES: Readonly<Record<string, ComponentType<BoxTabProps>>> = {}
