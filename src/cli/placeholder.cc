// Holds the place of the layer until its first source.
