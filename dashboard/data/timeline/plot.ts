// The borders of the plot, which all charts and lanes share so that one time is at one position.

/** Pixels beside the plot, for the labels of the value axes and of the lanes. */
export const PLOT_LEFT = 68
export const PLOT_RIGHT = 10

export const getPlotWidth = (width: number): number => Math.max(0, width - PLOT_LEFT - PLOT_RIGHT)
