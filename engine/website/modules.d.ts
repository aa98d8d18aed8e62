declare module 'html-encoding-sniffer' {
  /** The name of the encoding that a browser would read the bytes in: BOM, transport label, then `<meta>`. */
  function sniffEncoding(
    bytes: Uint8Array,
    options?: { xml?: boolean; transportLayerEncodingLabel?: string; defaultEncoding?: string },
  ): string;
  export = sniffEncoding;
}

/** Its own types are those of an ES module, which it is not. */
declare module 'robots-parser' {
  function robotsParser(
    url: string,
    text: string,
  ): {
    /** Undefined for addresses of another origin. */
    isAllowed(url: string, userAgent: string): boolean | undefined;
    /** Seconds. */
    getCrawlDelay(userAgent: string): number | undefined;
  };
  export = robotsParser;
}
